#include "ops/shared/common.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

// Why a node cannot have half sums; empty if it can.
std::string problem_of(const ir::Graph& graph, const ir::Node& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const int id = node.inputs[i], slot = static_cast<int>(i);
    // Biases and residuals are added to whole sums, and slopes multiply these.
    if (id < 0 || slot == node.kind->weights.bias || slot == node.kind->residual ||
        slot == node.kind->slopes)
      continue;
    const ir::Tensor& tensor = graph.tensor(id);
    if (tensor.is_quantized() || ops::has_int8_weights(graph, node))
      return "products of integers are added as they are";
    if (tensor.dtype != DType::kF32 || tensor.storage == DType::kF16) continue;
    if (!tensor.is_constant() && tensor.storage == DType::kBF16)
      return "an input is stored as bfloat16";
    if (!tensor.is_constant()) {
      if (!graph.allows_half) return "an input is stored as float";
    } else if (!tensor.constant->fits_half()) {
      return "a constant is beyond the largest half";
    }
  }
  return {};
}

}  // namespace

void choose_sums(ir::Graph& graph, bool all, const PrecisionPlan* plan) {
  for (ir::Node& node : graph.nodes) {
    const bool wanted = all || (plan != nullptr && plan->half_sums.count(node.tflite_index) != 0);
    if (!wanted || !node.kind->half_sums) continue;
    const std::string problem = problem_of(graph, node);
    node.half_sums = problem.empty();
    if (problem.empty()) continue;
    declined(graph, "choose_sums", node.tflite_index, "sums stay float: " + problem);
  }
}

}  // namespace clgpu::passes
