// Splits large weights that do not fit into pieces that do. A shaped pass.
#pragma once

#include <cstdint>

#include "ir/graph.hpp"

namespace clgpu::passes {

/// A FULLY_CONNECTED or ungrouped CONV_2D whose constant weights take more than `limit` bytes on
/// the device becomes several nodes, each with some of the output channels: its weights are a part
/// of the same bytes, and it writes to its place in the result. Weights that are a transposed
/// constant are transposed here, since the device could not hold them. A GATHER of the rows of such
/// a constant becomes several, each of a part of the table. Returns whether anything changed.
bool split_weights(ir::Graph& graph, std::int64_t limit);

}  // namespace clgpu::passes
