// What passes may know of reductions.
#pragma once

#include "ir/graph.hpp"

namespace clgpu::ops {

/// Whether a node is the MEAN over all axes of its input but the first and the last, and keeps
/// these axes with size 1; with `any_rank`, it may also remove them.
bool is_mean_of_pixels(const ir::Graph& graph, const ir::Node& node, bool any_rank);
inline bool keeps_mean_of_pixels(const ir::Graph& graph, const ir::Node& node) {
  return is_mean_of_pixels(graph, node, /*any_rank=*/false);
}

/// Whether a node is the MEAN over the last axis, and keeps this axis with size 1.
bool is_mean_of_row(const ir::Graph& graph, const ir::Node& node);

/// Reductions over the last axis alone.
enum class RowReduction { kNone, kSum, kMean };
RowReduction row_reduction(const ir::Graph& graph, const ir::Node& node);

/// The axis of a SUM over one axis of floats; -1 for every other node.
int summed_axis(const ir::Graph& graph, const ir::Node& node);

}  // namespace clgpu::ops
