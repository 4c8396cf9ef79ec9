// The largest elements of a carried tensor, such as a language model's logits, which stay on the
// device.
#pragma once

#include "delegate/building/carried_sets.hpp"
#include "delegate/building/state.hpp"

namespace clgpu::delegate {

/// Finds the `count` largest elements of each row of the carried tensor with this number. With a
/// count of 0 the first of the largest, with the sum of the row, which is not a number if an
/// element is not. What computes it is built at the first call. Throws Error if no graph on the
/// device has used the tensor, if its elements are not floats, and where the device cannot compute
/// it. Those that the last inference has found are not computed again.
Largest find_largest(State& state, Carriers& carriers, int number, int count);

/// Adds to a graph what finds them in each inference, as outputs (ir::Tensor::largest_of): of the
/// tensor `output`, which is carried and a result of a node. Leaves the graph as it is
/// where find_largest() would throw.
void append_largest(ir::Graph& graph, int output, int count);
/// Whether a graph has that.
bool finds_largest(const ir::Graph& graph);
void remove_largest(ir::Graph& graph);

}  // namespace clgpu::delegate
