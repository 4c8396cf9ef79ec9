// What passes may know of TRANSPOSE.
#pragma once

#include "ir/node.hpp"

namespace clgpu::ops {

/// Whether a node swaps the axes of a matrix.
bool transposes_matrix(const ir::Node& node);

}  // namespace clgpu::ops
