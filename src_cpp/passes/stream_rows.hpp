// Row streaming: chains of nodes computed band by band, so that the tensors between them never
// exist as a whole. A shaped pass: it relies on dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.hpp"

namespace clgpu::passes {

/// Nodes that can be computed together band by band: no path from one to another leaves the set.
struct RowRegion {
  std::vector<int> nodes;    ///< indices into graph.nodes, ascending
  std::int64_t largest = 0;  ///< bytes of the largest tensor that is read only inside
  std::int64_t all = 0;      ///< bytes of all such tensors
};

/// Where regions end.
enum class RowCut {
  kNowhere,  ///< if a node needs all rows, or cannot be computed by rows: as large as possible
  kHeights,  ///< also at nodes that change the height
};

/// Regions; each reads only from earlier ones. Nodes that stream_rows has created are left out.
std::vector<RowRegion> row_regions(const ir::Graph& graph, RowCut cut = RowCut::kNowhere);

/// Rewrites regions (indices into graph.nodes; none twice) so that one step computes `band` rows of
/// the tallest tensors, and proportionally many rows of others. Every row is computed once; rows
/// that later steps need are kept. Results that are read outside are joined to whole tensors, but
/// those of more than `most` bytes remain bands, which later regions read. What a region reads of
/// other nodes is cut into bands behind the node that writes it if it has more than `most` bytes.
/// Returns whether anything changed; a region that is no taller than a band does not change.
bool stream_rows(ir::Graph& graph, const std::vector<std::vector<int>>& regions, int band,
                 std::int64_t most = INT64_MAX);

}  // namespace clgpu::passes
