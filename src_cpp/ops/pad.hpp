// Attributes of the padding operations, which a pass may fuse into a convolution.
#pragma once

#include <vector>

#include "ir/node.hpp"

namespace clgpu::ops {

struct PadAttrs : ir::Attrs {
  enum class Mode {
    kConstant,   ///< zero, or the value of input 2 where the node has one
    kReflect,    ///< mirrored, the outermost element once: c b | a b c | b a
    kSymmetric,  ///< mirrored, the outermost element twice: b a | a b c | c b
  };
  std::vector<int> before, after;  ///< elements in front of and behind each axis, not negative
  Mode mode = Mode::kConstant;
};

}  // namespace clgpu::ops
