// What passes may know of CONCATENATION and PACK, and functions that create them.
#pragma once

#include <vector>

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {

extern const Family kConcatenationFamily;

/// Engines that an option can select: each input is copied by its own launch; convolutions of the
/// whole become sums of convolutions of the inputs, which is not a candidate.
constexpr const char *kRowsEngine = "rows", *kSplitEngine = "split";

struct ConcatenationAttrs : ir::Attrs {
  int axis = 0;           ///< of the output
  bool new_axis = false;  ///< PACK: the inputs lack the axis
  CLGPU_FIELDS(axis, new_axis)
};

/// Whether a node is a CONCATENATION of rows: of NHWC tensors along axis 1.
bool joins_rows(const ir::Node& node);

/// A CONCATENATION of `parts` along an axis.
ir::Node concatenation_of(const std::vector<int>& parts, int whole, int axis);

/// A PACK of `parts`: the whole has a new axis in front.
ir::Node stack_of(const std::vector<int>& parts, int whole);

/// The place of an input of a concatenation in the output, in elements: element row * columns + c
/// of the input is the output's element first + row * pitch + c.
struct Part {
  std::int64_t rows = 1, columns = 1;
  std::int64_t first = 0, pitch = 0;
};

/// Whether a CONCATENATION changes the stored integers of a part because its scale differs from the
/// whole's.
bool is_requantized(const ir::Tensor& part, const ir::Tensor& whole);

/// The parts of a node with ConcatenationAttrs and known shapes, one for each input.
std::vector<Part> parts_of(const NodeContext& node);

}  // namespace clgpu::ops
