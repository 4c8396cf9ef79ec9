// The graph by which a composite operation is defined, as the runtime shows it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tfl/node_view.hpp"

namespace clgpu::tfl {

/// A node of the graph.
struct Step {
  int builtin;
  std::vector<int> inputs, outputs;  ///< tensors of the graph
  const void* params;                ///< TfLiteNode::builtin_data, while the model exists
};

struct Decomposition {
  std::vector<Step> steps;                        ///< in the order of execution
  std::map<int, std::vector<int>> shapes;         ///< of the tensors that they name
  std::map<int, double> uniform;                  ///< constants whose elements are equal
  std::map<int, std::vector<std::int64_t>> ints;  ///< constants of a few integers
};

/// The graph with this index, other than the node's own; none if the runtime does not show it.
std::optional<Decomposition> read_decomposition(const NodeView& node, int subgraph);

}  // namespace clgpu::tfl
