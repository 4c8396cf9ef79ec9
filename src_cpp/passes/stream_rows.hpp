// Row streaming: chains of nodes computed band by band, so that the tensors between them never
// exist as a whole. A shaped pass: it relies on dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.hpp"

namespace clgpu::passes {

/// Nodes that can be computed band by band together: no path from one to another leaves them.
struct RowRegion {
  std::vector<int> nodes;    ///< indices into graph.nodes, ascending
  std::int64_t largest = 0;  ///< bytes of the largest tensor that is read within alone
  std::int64_t all = 0;      ///< bytes of all such tensors
};

/// Where regions end.
enum class RowCut {
  kNowhere,  ///< where a node needs all rows, or cannot be computed by rows: as large as possible
  kHeights,  ///< also where the height changes
};

/// Regions, each reading only from those in front of it. What stream_rows has made is left out.
std::vector<RowRegion> row_regions(const ir::Graph& graph, RowCut cut = RowCut::kNowhere);

/// Rewrites regions (indices into graph.nodes; none twice) so that in one step `band` rows of its
/// tallest tensors are computed, of others in proportion; every row is computed once. Rows that
/// later steps need are carried along. Results that are read outside are joined to whole tensors,
/// but those of more than `max_object` bytes remain bands, which regions behind read. Returns
/// whether anything changed; a region that is no taller than a band does not.
bool stream_rows(ir::Graph& graph, const std::vector<std::vector<int>>& regions, int band,
                 std::int64_t max_object = INT64_MAX);

}  // namespace clgpu::passes
