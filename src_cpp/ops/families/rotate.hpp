// Rotations of pairs of numbers, which the pass fuse_rotation makes.
#pragma once

#include <optional>

#include "ir/graph.hpp"

namespace clgpu::ops {

/// The node that turns the pairs (x[..., j], x[..., j + half]) of `x`, whose last axis has 2 * half
/// elements, by angles. `cosine` and `sine` have one shape, which broadcasts to that of `x` but for
/// the last axis: that has half elements, or those of `x`. It replaces `last` and has its result.
ir::Node rotation(const ir::Node& last, int x, int cosine, int sine);

/// The node that replaces a part of a tensor by turned pairs, in place of a DYNAMIC_UPDATE_SLICE
/// whose update is the result of `turned`; none if they are not such nodes.
std::optional<ir::Node> rotated_update(const ir::Graph& graph, const ir::Node& update,
                                       const ir::Node& turned);

/// A rotation, an update, or an update with turned pairs, by the inputs of their nodes; -1: it has
/// none.
struct RowsEnd {
  int rows = -1;  ///< that are turned or written
  int cosine = -1, sine = -1;
  int old = -1, start = -1;
};
std::optional<RowsEnd> rows_end(const ir::Node& node);

}  // namespace clgpu::ops
