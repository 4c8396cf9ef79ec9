// Attributes of STRIDED_SLICE and SLICE, which a pass may fold into a convolution.
#pragma once

#include <vector>

#include "ir/fields.hpp"

namespace clgpu::ops {

/// The slice along one axis of the input, or a new axis of the output.
struct AxisRule {
  enum class Kind { kWhole, kRange, kIndex, kNewAxis };
  Kind kind = Kind::kWhole;
  int begin = 0;
  int end = 0;  ///< of STRIDED_SLICE; counted from the back if negative, like `begin`
  int stride = 1;
  bool from_start = false, to_end = false;  ///< ignore begin, end
  int size = 0;                             ///< of SLICE, -1 for all remaining elements
  int place = -1;  ///< index in input 1 of a begin that only an inference has; -1: `begin` holds
  CLGPU_FIELDS(kind, begin, end, stride, from_start, to_end, size, place)
  static const char* words(std::string_view member) {
    if (member == "kind") return "whole, range, index, new_axis";
    return "";
  }
};

struct SliceAttrs : ir::Attrs {
  bool strided = true;
  bool end_is_offset = false;   ///< end counts from begin
  std::vector<AxisRule> rules;  ///< in order; those that are not a new axis belong to input axes
  CLGPU_FIELDS(strided, end_is_offset, rules)
};

/// Elements left out at the beginning and at the end.
struct Margin {
  int before = 0, after = 0;
};

/// One per axis if the slice leaves out the same elements for every size of its input; otherwise
/// none.
std::vector<Margin> margins(const SliceAttrs& attrs);

}  // namespace clgpu::ops
