// Kernels that compute floats and write integers, and so on: tensors that have another type in
// memory than in arithmetic (ir::Tensor::is_converted).
#pragma once

#include <vector>

#include "ops/family.hpp"

namespace clgpu::ops {

/// Whether kernels of a node's family can write its result as numbers of this type: floats as
/// integers of 8 or 16 bits, or such integers as floats.
bool can_convert_result(const ir::Graph& graph, const ir::Node& node, DType storage);

/// Whether they can read an input of floats that is stored as integers of this type. A launch
/// converts one input.
bool can_convert_input(const ir::Graph& graph, const ir::Node& node, int slot, DType storage);

/// Lets a tensor that is converted have the type of its arithmetic in memory, too.
void store_as_computed(ir::Tensor& tensor);

/// The candidates of a node, those of its family. Where its result or an input is converted, the
/// family sees it as stored in the type of its arithmetic, and the launches are changed afterwards.
std::vector<kernel::Candidate> candidates_of(const NodeContext& node, const DeviceInfo& device);

}  // namespace clgpu::ops
