// Attributes of the padding operations, which a pass may fuse into a convolution.
#pragma once

#include <vector>

#include "ir/fields.hpp"

namespace clgpu::ops {

struct PadAttrs : ir::Attrs {
  enum class Mode {
    kConstant,   ///< zero, or the value of input 2 if the node has one
    kReflect,    ///< mirrored, the outermost element once: c b | a b c | b a
    kSymmetric,  ///< mirrored, the outermost element twice: b a | a b c | c b
  };
  /// Elements before and after each axis. Negative in a node that computes a band of rows (except
  /// for axes that are mirrored at this end): that many elements of the input are left out.
  std::vector<int> before, after;
  Mode mode = Mode::kConstant;
  CLGPU_FIELDS(before, after, mode)
  static const char* words(std::string_view member) {
    if (member == "mode") return "constant, reflect, symmetric";
    return "";
  }
};

}  // namespace clgpu::ops
