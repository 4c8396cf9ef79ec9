#include "ops/families/cast.hpp"
#include "ops/families/dequantize.hpp"
#include "ops/family.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void keep_half_constants(ir::Graph& graph) {
  constexpr const char* kPass = "keep_half_constants";
  std::vector<ir::Node> kept;
  for (ir::Node& node : graph.nodes) {
    const bool widens = ops::is_half_dequantize(node) || ops::is_half_cast(graph, node);
    if (!widens || !graph.tensor(node.inputs[0]).is_constant()) {
      if (widens) ir::declined(graph, kPass, node.tflite_index, "its input is not a constant");
      kept.push_back(std::move(node));
      continue;
    }
    ir::applied(graph, kPass, node.tflite_index);
    const ir::Tensor& half = graph.tensor(node.inputs[0]);
    ir::Tensor& result = graph.tensor(node.outputs[0]);
    result.constant = half.constant;
    result.shape = half.shape;
  }
  graph.nodes = std::move(kept);
}

}  // namespace clgpu::passes
