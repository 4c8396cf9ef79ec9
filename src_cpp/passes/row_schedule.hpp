// Which rows of a region's tensors exist after which step.
#pragma once

#include <vector>

#include "ops/shared/row_rules.hpp"

namespace clgpu::passes {

/// Whether the rows of a node can be computed apart.
bool has_rows(const ir::Graph& graph, const ir::Node& node);

/// The rows of an input that some rows of the results need, all of them inside of the input; at
/// least one. Not of inputs that are needed whole.
ops::RowRange rows_needed(const ops::NodeContext& node, int input, ops::RowRange rows);

/// A node of the region that reads rows of a result of another.
struct RowReader {
  int node = 0;  ///< position in the region
  int input = 0;
};

/// The nodes of a region in order, and who reads rows of whom.
struct RowChain {
  std::vector<int> nodes;                       ///< indices into graph.nodes
  std::vector<std::vector<RowReader>> readers;  ///< of each node's results
  std::vector<bool> outside;                    ///< its results are read outside, or nowhere
};

/// progress[step][node]: rows of the node's results that exist after the step. Each runs ahead of
/// its readers by what they need, and all advance by a band in proportion to their height; so in
/// the first steps only the foremost run.
std::vector<std::vector<int>> row_progress(const ir::Graph& graph, const RowChain& chain, int band);

}  // namespace clgpu::passes
