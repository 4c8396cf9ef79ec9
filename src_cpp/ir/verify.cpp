#include "ir/verify.hpp"

#include "base/error.hpp"
#include "base/index.hpp"
#include "ir/text.hpp"

namespace clgpu::ir {

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
