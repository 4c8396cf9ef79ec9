// Attributes of concatenations, which passes look through and make.
#pragma once

#include "ir/node.hpp"

namespace clgpu::ops {

struct ConcatenationAttrs : ir::Attrs {
  int axis = 0;           ///< of the output
  bool new_axis = false;  ///< PACK: the inputs lack the axis
};

/// Whether a node is a CONCATENATION of rows: of NHWC tensors along axis 1.
bool joins_rows(const ir::Node& node);

/// A CONCATENATION of `parts` along an axis.
ir::Node concatenation_of(const std::vector<int>& parts, int whole, int axis);

}  // namespace clgpu::ops
