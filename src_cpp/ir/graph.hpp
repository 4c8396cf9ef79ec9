// The graph of one partition: plain data, nodes in execution order.
#pragma once

#include <string>
#include <vector>

#include "base/index.hpp"
#include "ir/node.hpp"
#include "ir/tensor.hpp"

namespace clgpu::ir {

/// What a pass has done at a node of the model, or why it has done nothing.
struct Step {
  enum class Outcome {
    kApplied,   ///< the pass has changed the graph
    kDeclined,  ///< the pass applies to such nodes, but left this one unchanged
    kSkipped,   ///< the pass has not looked at any node because of an option
  };
  std::string pass;  ///< name of its function
  Outcome outcome = Outcome::kApplied;
  int node = -1;       ///< index in the model; -1: no particular node
  int into = -1;       ///< index in the model of the node that computes it now; -1: none does
  std::string detail;  ///< why something has not been done, or details of what has been done
  int tensor = -1;     ///< number in the model of the tensor that it is about; -1: of no single one
};

/// "applied", "declined", "skipped".
const char* name_of(Step::Outcome outcome);

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<int> inputs;   ///< tensors uploaded for each run
  std::vector<int> outputs;  ///< tensors downloaded after each run
  bool allows_tf32 = false;  ///< factors of products may be rounded to TF32: 10 bits of mantissa
  bool allows_half = false;  ///< ... and end at the largest half, 65504
  std::vector<Step> steps;   ///< what the passes have done so far, in order
  /// Of the inputs, if a pass has decided by sizes: with other shapes the graph has to be made
  /// anew.
  std::vector<Shape> relies_on;

  const Tensor& tensor(int id) const { return tensors[uz(id)]; }
  Tensor& tensor(int id) { return tensors[uz(id)]; }
};

/// Readers of each tensor: indices into graph.nodes. A node reads its inputs and its predicate.
std::vector<std::vector<int>> readers_of(const Graph& graph);

/// Writer of each tensor: index into graph.nodes, -1 for inputs and constants.
std::vector<int> writers_of(const Graph& graph);

/// Whether the factors of a node's products may be rounded to TF32.
inline bool allows_tf32(const Graph& graph, const Node& node) {
  return graph.allows_tf32 || node.allows_tf32;
}

/// Whether they may be written as sums of two bfloat16 numbers each, almost as exact as floats.
inline bool allows_bf16_pairs(const Graph& graph, const Node& node) {
  return node.bf16_pairs && !allows_tf32(graph, node);
}

/// True for tensors that are graph outputs.
std::vector<bool> output_mask(const Graph& graph);

/// Records that a pass has decided by sizes that may change with those of the inputs.
void rely_on_shapes(Graph& graph);

/// Whether the inputs have the shapes that passes have relied on.
bool has_shapes_of_passes(const Graph& graph);

/// Records that a pass has changed a node of the model, or merged it into another one.
void applied(Graph& graph, const char* pass, int node, int into = -1, std::string detail = {});

/// Records that a pass has left a node of the model, or one tensor there, unchanged.
void declined(Graph& graph, const char* pass, int node, std::string reason, int tensor = -1);

/// Records that a pass has not looked at the graph.
void skipped(Graph& graph, const char* pass, std::string reason);

/// The node of the model into which passes have merged this one, -1 if they have not.
int merged_into(const Graph& graph, int node);

/// Puts each node behind those that write what it reads; apart from that, nodes keep their order.
void sort_nodes(Graph& graph);

/// Removes the marked nodes; the others keep their order.
void remove_nodes(Graph& graph, const std::vector<bool>& marked);

}  // namespace clgpu::ir
