#include "ir/verify.hpp"

#include "base/error.hpp"
#include "base/index.hpp"
#include "ir/text.hpp"

namespace clgpu::ir {

namespace {

// Of the graphs that a node runs; empty if there is none.
std::string problem_of_graphs(const Node& node) {
  const Runs runs = node.kind == nullptr ? Runs::kNone : node.kind->runs;
  const std::size_t wanted = runs == Runs::kNone ? 0 : 2;
  if (node.graphs.size() != wanted)
    return node.op + " has " + std::to_string(node.graphs.size()) + " graphs; expected " +
           std::to_string(wanted);
  const std::size_t first = runs == Runs::kBranch ? 1 : 0;
  if (wanted > 0 && node.inputs.size() < first) return node.op + " has no condition";
  for (const auto& graph : node.graphs) {
    const std::string where = "in a graph of " + node.op + ": ";
    if (const std::string problem = problem_of(*graph); !problem.empty()) return where + problem;
    const std::size_t inputs = node.inputs.size() - first;
    const std::size_t numbers = runs == Runs::kLoop ? inputs : inputs + node.outputs.size();
    for (const int id : graph->inputs) {
      const int number = graph->tensor(id).carried;
      if (number < 0 || uz(number) >= inputs) return where + "an input has no number of the node";
    }
    for (const int id : graph->outputs) {
      const int number = graph->tensor(id).carried;
      if (number >= 0 && uz(number) >= numbers) return where + "an output has a wrong number";
    }
  }
  return {};
}

}  // namespace

std::string problem_of(const Graph& graph) {
  const auto exists = [&](int id) { return id >= 0 && uz(id) < graph.tensors.size(); };
  const auto name = [](int id) { return "%" + std::to_string(id); };
  std::vector<bool> written(graph.tensors.size(), false);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    written[i] = graph.tensors[i].is_constant();
  for (const int id : graph.inputs) {
    if (!exists(id)) return "an input is an unknown tensor";
    written[uz(id)] = true;
  }
  for (const Node& node : graph.nodes) {
    std::vector<int> read = node.inputs;
    read.push_back(node.predicate);
    for (const int id : read) {
      if (id < 0) continue;
      if (!exists(id)) return node.op + " reads an unknown tensor";
      if (!written[uz(id)]) return node.op + " reads " + name(id) + " before it is written";
    }
    for (const int id : node.outputs) {
      if (!exists(id)) return node.op + " writes an unknown tensor";
      if (written[uz(id)]) return name(id) + " is written twice";
      written[uz(id)] = true;
    }
  }
  for (const Node& node : graph.nodes) {
    if (std::string problem = problem_of_graphs(node); !problem.empty()) return problem;
  }
  for (const int id : graph.outputs) {
    if (!exists(id)) return "an output is an unknown tensor";
    if (!written[uz(id)]) return "output " + name(id) + " is never written";
  }
  return {};
}

void verify(const Graph& graph) {
  const std::string problem = problem_of(graph);
  if (problem.empty()) return;
  TextOptions options;
  options.complete = options.digests = false;
  throw InternalError(problem + " in\n" + write_text(graph, options));
}

}  // namespace clgpu::ir
