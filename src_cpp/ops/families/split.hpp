// What passes may know of SPLIT and SPLIT_V.
#pragma once

#include "ir/graph.hpp"

namespace clgpu::ops {

/// The tensor that a node splits into two halves along the last axis; -1 for every other node.
int split_into_halves(const ir::Graph& graph, const ir::Node& node);

/// The tensor that a node splits along the last axis into parts of one element each; -1 for every
/// other node.
int split_into_elements(const ir::Graph& graph, const ir::Node& node);

}  // namespace clgpu::ops
