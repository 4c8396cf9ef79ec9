#include "ops/families/unary.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void fuse_activation(ir::Graph& graph) {
  const auto readers = ir::readers_of(graph);
  const auto is_output = ir::output_mask(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    ir::Node& node = graph.nodes[i];
    // Several in a row never fuse: the epilogue holds one activation.
    if (removed[i] || !node.kind->has_epilogue || !node.epilogue.empty() ||
        node.outputs.size() != 1)
      continue;
    const auto result = static_cast<std::size_t>(node.outputs[0]);
    if (is_output[result] || readers[result].size() != 1) continue;
    if (graph.tensors[result].dtype != DType::kF32) continue;
    const auto next = static_cast<std::size_t>(readers[result][0]);
    const auto epilogue = ops::as_epilogue(graph.nodes[next]);
    if (!epilogue || removed[next]) continue;
    node.epilogue = *epilogue;
    graph.fused[graph.nodes[next].tflite_index] = node.tflite_index;
    node.outputs[0] = graph.nodes[next].outputs[0];
    removed[next] = true;
  }
  ir::remove_nodes(graph, removed);
}

}  // namespace clgpu::passes
