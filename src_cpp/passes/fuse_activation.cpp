#include "ops/families/unary.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "fuse_activation";

}  // namespace

void fuse_activation(ir::Graph& graph) {
  const auto readers = ir::readers_of(graph);
  const auto is_output = ir::output_mask(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    ir::Node& node = graph.nodes[i];
    if (removed[i] || !node.kind->has_epilogue || node.outputs.size() != 1) continue;
    const auto result = static_cast<std::size_t>(node.outputs[0]);
    const std::string problem = [&]() -> std::string {
      if (!node.epilogue.empty()) return "the node before it has an activation already";
      if (is_output[result]) return "what it reads is a result of the partition";
      if (readers[result].size() != 1) return "other nodes read what it reads";
      if (graph.tensors[result].dtype != DType::kF32) return "what it reads is not float32";
      return {};
    }();
    for (const int reader : std::vector<int>(readers[result])) {
      const auto next = static_cast<std::size_t>(reader);
      const int index = graph.nodes[next].tflite_index;
      const auto epilogue = ops::as_epilogue(graph.nodes[next]);
      if (!epilogue || removed[next]) continue;
      if (!problem.empty()) {
        ir::declined(graph, kPass, index, problem);
        continue;
      }
      node.epilogue = *epilogue;
      ir::applied(graph, kPass, index, node.tflite_index);
      node.outputs[0] = graph.nodes[next].outputs[0];
      removed[next] = true;
    }
  }
  ir::remove_nodes(graph, removed);
}

}  // namespace clgpu::passes
