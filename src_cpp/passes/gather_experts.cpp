#include "base/index.hpp"
#include "ops/families/expert_matmul.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void gather_experts(ir::Graph& graph, Experts experts) {
  constexpr const char* kPass = "gather_experts";
  const auto readers = ir::readers_of(graph);
  const auto writers = ir::writers_of(graph);
  const auto is_output = ir::output_mask(graph);
  for (ir::Node& product : graph.nodes) {
    for (std::size_t slot = 0; slot < product.inputs.size(); ++slot) {
      const int matrices = product.inputs[slot];
      if (matrices < 0 || writers[uz(matrices)] < 0) continue;
      const ir::Node& gather = graph.nodes[uz(writers[uz(matrices)])];
      auto node = ops::expert_matmul(graph, gather, product, static_cast<int>(slot));
      if (!node) continue;
      if (experts == Experts::kDense)
        return ir::skipped(graph, kPass, "the option experts is dense");
      if (is_output[uz(matrices)] || readers[uz(matrices)].size() != 1) {
        ir::declined(graph, kPass, product.tflite_index,
                     "the matrices that are gathered are needed elsewhere, too");
        continue;
      }
      ir::applied(graph, kPass, gather.tflite_index, product.tflite_index);
      product = std::move(*node);
      break;
    }
  }
}

}  // namespace clgpu::passes
