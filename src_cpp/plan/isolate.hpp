// One node of a graph as a graph of its own.
#pragma once

#include "ir/graph.hpp"

namespace clgpu::plan {

/// The graph of the node at this position and of the nodes that compute its constants; its inputs
/// are the other tensors the node reads. An output that is placed in another tensor is that tensor.
ir::Graph isolate(const ir::Graph& graph, std::size_t position);

}  // namespace clgpu::plan
