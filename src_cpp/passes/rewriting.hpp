// For passes that make one node of several: who writes and reads a tensor, and the removal of what
// has no readers any more.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"

namespace clgpu::passes {

/// The value of a constant float or half with one element.
std::optional<float> number_of(const ir::Tensor& tensor);

/// A graph while a pass replaces nodes. Indices of nodes stay until finish().
class Rewriting {
 public:
  Rewriting(ir::Graph& graph, const char* pass);

  std::size_t size() const { return graph_.nodes.size(); }
  /// Null for a node that has been removed.
  const ir::Node* node(std::size_t index) const {
    return removed_[index] ? nullptr : &graph_.nodes[index];
  }
  /// Index of the node that writes a tensor; -1 for inputs, constants and missing operands.
  int writer(int tensor) const { return tensor < 0 ? -1 : writers_[uz(tensor)]; }
  /// The node that reads a tensor, if there is only one, it reads it once, and the tensor is no
  /// result of the graph; otherwise -1.
  int only_reader(int tensor) const;

  /// Adds a float tensor for the result of a node that insert() adds.
  int add_tensor(const ir::Shape& shape);
  /// Adds a node in front of another one.
  void insert(std::size_t before, ir::Node node);

  /// Replaces the node at an index by one with the same results. Of `parts`, the nodes whose
  /// results nobody reads any more are removed; a step notes each.
  void replace(std::size_t index, ir::Node node, std::vector<std::size_t> parts);

  /// Removes and inserts nodes.
  void finish();

 private:
  void count_reads(const ir::Node& node, int by);

  ir::Graph& graph_;
  const char* pass_;
  std::vector<int> writers_, reads_;
  std::vector<bool> is_output_, removed_;
  std::vector<std::pair<std::size_t, ir::Node>> inserted_;
};

}  // namespace clgpu::passes
