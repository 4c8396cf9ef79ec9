// Which rows of a region's tensors exist after which step.
#pragma once

#include <string>
#include <vector>

#include "ops/shared/row_rules.hpp"

namespace clgpu::passes {

/// Whether the rows of a node's results depend on some rows of its inputs.
bool depends_by_rows(const ir::Graph& graph, const ir::Node& node);

/// Whether the rows of a node can be computed separately: in tensors that have memory of their own.
bool has_rows(const ir::Graph& graph, const ir::Node& node);

/// The rows of an input that some rows of the results need; at least one, all of them inside the
/// input. Not for inputs that are needed as a whole.
ops::RowRange rows_needed(const ops::NodeContext& node, int input, ops::RowRange rows);

/// A tensor of our own with the type and the shape of another one, named after it: no input, output
/// or part of another tensor, and with memory like any other.
ir::Tensor tensor_like(const ir::Tensor& source, const std::string& suffix);

/// The same for some of its rows, which an inference computes.
ir::Tensor rows_like(const ir::Tensor& whole, ops::RowRange rows);

/// A node of the region that reads rows of another node's result.
struct RowReader {
  int node = 0;  ///< position in the region
  int input = 0;
};

/// The nodes of a region in order, and which node reads rows of which.
struct RowChain {
  std::vector<int> nodes;                       ///< indices into graph.nodes
  std::vector<std::vector<RowReader>> readers;  ///< of each node's results
  std::vector<bool> outside;  ///< whether its results are read outside, or have no readers
};

/// progress[step][node]: rows of the node's results that exist after the step. Each node is ahead
/// of its readers by the rows that they need, and all advance by a band in proportion to their
/// height; so only the first nodes run in the first steps.
std::vector<std::vector<int>> row_progress(const ir::Graph& graph, const RowChain& chain, int band);

}  // namespace clgpu::passes
