// The graph of one partition: plain data, nodes in execution order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "ir/node.hpp"
#include "ir/tensor.hpp"

namespace clgpu::ir {

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<int> inputs;   ///< tensors uploaded for each run
  std::vector<int> outputs;  ///< tensors downloaded after each run
  bool allows_tf32 = false;  ///< factors of products may be rounded to TF32: 10 bits of mantissa
  std::map<int, int> fused;  ///< nodes of the model that passes merged: which into which

  const Tensor& tensor(int id) const { return tensors[uz(id)]; }
  Tensor& tensor(int id) { return tensors[uz(id)]; }
};

/// Readers of each tensor: indices into graph.nodes.
std::vector<std::vector<int>> readers_of(const Graph& graph);

/// Writer of each tensor: index into graph.nodes, -1 for inputs and constants.
std::vector<int> writers_of(const Graph& graph);

/// True where a tensor is a graph output.
std::vector<bool> output_mask(const Graph& graph);

/// Takes out the nodes that are marked; the others keep their order.
void remove_nodes(Graph& graph, const std::vector<bool>& marked);

/// One line per node: "%7 = CONV_2D(%0, %1, %2) float32[1, 8, 8, 16]"; for messages and tests.
std::string print(const Graph& graph);

/// Throws InternalError when an id is out of range, a tensor is read before it is written, or two
/// nodes write the same tensor.
void verify(const Graph& graph);

}  // namespace clgpu::ir
