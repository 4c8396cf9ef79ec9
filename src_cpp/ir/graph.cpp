#include "ir/graph.hpp"

#include <algorithm>
#include <functional>

#include "base/index.hpp"

namespace clgpu::ir {

std::vector<std::vector<int>> readers_of(const Graph& graph) {
  std::vector<std::vector<int>> readers(graph.tensors.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int id : graph.nodes[n].inputs) {
      if (id >= 0) readers[uz(id)].push_back(static_cast<int>(n));
    }
    if (const int id = graph.nodes[n].predicate; id >= 0)
      readers[uz(id)].push_back(static_cast<int>(n));
  }
  return readers;
}

std::vector<int> writers_of(const Graph& graph) {
  std::vector<int> writers(graph.tensors.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int id : graph.nodes[n].outputs) writers[uz(id)] = static_cast<int>(n);
  }
  return writers;
}

std::vector<bool> output_mask(const Graph& graph) {
  std::vector<bool> mask(graph.tensors.size(), false);
  for (const int id : graph.outputs) mask[uz(id)] = true;
  return mask;
}

void sort_nodes(Graph& graph) {
  const std::vector<int> writers = writers_of(graph);
  std::vector<bool> placed(graph.nodes.size(), false);
  std::vector<Node> sorted;
  const std::function<void(std::size_t)> place = [&](std::size_t n) {
    if (placed[n]) return;
    placed[n] = true;
    std::vector<int> read = graph.nodes[n].inputs;
    read.push_back(graph.nodes[n].predicate);
    for (const int id : read) {
      if (id >= 0 && writers[uz(id)] >= 0) place(uz(writers[uz(id)]));
    }
    sorted.push_back(std::move(graph.nodes[n]));
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) place(n);
  graph.nodes = std::move(sorted);
}

void remove_nodes(Graph& graph, const std::vector<bool>& marked) {
  std::vector<Node> kept;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!marked[i]) kept.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(kept);
}

const char* name_of(Step::Outcome outcome) {
  switch (outcome) {
    case Step::Outcome::kDeclined:
      return "declined";
    case Step::Outcome::kSkipped:
      return "skipped";
    case Step::Outcome::kApplied:
      break;
  }
  return "applied";
}

void rely_on_shapes(Graph& graph) {
  graph.relies_on.clear();
  for (const int id : graph.inputs) graph.relies_on.push_back(graph.tensor(id).shape);
}

bool has_shapes_of_passes(const Graph& graph) {
  if (graph.relies_on.empty()) return true;
  return std::equal(graph.inputs.begin(), graph.inputs.end(), graph.relies_on.begin(),
                    graph.relies_on.end(),
                    [&](int id, const Shape& shape) { return graph.tensor(id).shape == shape; });
}

void applied(Graph& graph, const char* pass, int node, int into, std::string detail) {
  graph.steps.push_back({pass, Step::Outcome::kApplied, node, into, std::move(detail)});
}

void declined(Graph& graph, const char* pass, int node, std::string reason, int tensor) {
  graph.steps.push_back({pass, Step::Outcome::kDeclined, node, -1, std::move(reason), tensor});
}

void skipped(Graph& graph, const char* pass, std::string reason) {
  graph.steps.push_back({pass, Step::Outcome::kSkipped, -1, -1, std::move(reason)});
}

int merged_into(const Graph& graph, int node) {
  for (auto step = graph.steps.rbegin(); step != graph.steps.rend(); ++step) {
    if (step->outcome == Step::Outcome::kApplied && step->node == node && step->into >= 0)
      return step->into;
  }
  return -1;
}

}  // namespace clgpu::ir
