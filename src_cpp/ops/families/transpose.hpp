// What passes may know of TRANSPOSE.
#pragma once

#include <vector>

#include "ir/graph.hpp"
#include "ir/node.hpp"

namespace clgpu::ops {

/// Whether a node swaps the axes of a matrix.
bool transposes_matrix(const ir::Node& node);

/// Whether a tensor is a constant, or a constant matrix with its axes swapped: what is packed of it
/// is packed while loading.
bool is_known_matrix(const ir::Graph& graph, int tensor);

/// The axis of the input for each axis of the output; null for a node of another family.
const std::vector<int>* permutation_of(const ir::Node& node);

}  // namespace clgpu::ops
