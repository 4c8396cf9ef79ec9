// What passes may know of TRANSPOSE.
#pragma once

#include <vector>

#include "ir/node.hpp"

namespace clgpu::ops {

/// Whether a node swaps the axes of a matrix.
bool transposes_matrix(const ir::Node& node);

/// The axis of the input for each axis of the output; null for a node of another family.
const std::vector<int>* permutation_of(const ir::Node& node);

}  // namespace clgpu::ops
