#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "base/index.hpp"
#include "passes/bias_correction.hpp"
#include "passes/float_constants.hpp"
#include "passes/pass.hpp"
#include "passes/small_tensors.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "round_weights";

ir::Tensor rounded(const ir::Tensor& weights, DType type) {
  const auto count = static_cast<std::size_t>(weights.shape.elements());
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(count * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < count; ++i) {
    const float value = element_of(*weights.constant, i);
    const std::uint16_t bits = type == DType::kF16 ? float_to_half(value) : float_to_bfloat(value);
    std::memcpy(bytes->data() + i * sizeof bits, &bits, sizeof bits);
  }
  ir::Tensor tensor = weights;
  tensor.constant =
      std::make_shared<const ir::Constant>(ir::Constant{bytes->data(), bytes->size(), type, bytes});
  return tensor;
}

class Rounding {
 public:
  Rounding(ir::Graph& graph, const PrecisionPlan& plan) : graph_(graph), plan_(plan) {}

  // Why the node stays as it is; nothing if it is not concerned.
  std::optional<std::string> apply(ir::Node& node) {
    const ir::Weights& kind = node.kind->weights;
    if (kind.slot <= 0 || kind.bias < 0 || node.inputs.size() <= uz(kind.slot)) return {};
    if (node.inputs[0] < 0 || node.inputs[uz(kind.slot)] < 0) return {};
    const auto means = plan_.means.find(graph_.tensor(node.inputs[0]).tflite_id);
    if (means == plan_.means.end()) return {};
    const int weights = node.inputs[uz(kind.slot)];
    const ir::Tensor& before = graph_.tensor(weights);
    const bool wide = plan_.bfloat.count(before.tflite_id) != 0;
    if (!wide && plan_.half.count(before.tflite_id) == 0) return {};
    if (plan_.int8.count(before.tflite_id) != 0) return {};
    if (*problem_of_floats(before) != 0 || before.constant->dtype != DType::kF32) return {};
    if (is_small(before) || (!wide && !before.constant->fits_half())) return {};
    std::string problem = problem_of_correction(graph_, node, means->second);
    if (!problem.empty()) return problem;
    auto [found, is_new] = rounded_.emplace(weights, static_cast<int>(graph_.tensors.size()));
    if (is_new) {
      ir::Tensor tensor = rounded(before, wide ? DType::kBF16 : DType::kF16);
      graph_.tensors.push_back(std::move(tensor));
    }
    ir::Tensor corrected =
        corrected_bias(graph_, node, graph_.tensor(found->second), means->second);
    graph_.tensors.push_back(std::move(corrected));
    node.inputs[uz(kind.slot)] = found->second;
    node.inputs[uz(kind.bias)] = static_cast<int>(graph_.tensors.size()) - 1;
    return "";
  }

 private:
  ir::Graph& graph_;
  const PrecisionPlan& plan_;
  std::map<int, int> rounded_;  // by the weights: several nodes may share them
};

}  // namespace

void round_weights(ir::Graph& graph, const PrecisionPlan& plan) {
  if (plan.means.empty()) return;
  Rounding rounding(graph, plan);
  for (ir::Node& node : graph.nodes) {
    auto problem = rounding.apply(node);
    if (!problem) continue;
    if (problem->empty()) {
      ir::applied(graph, kPass, node.tflite_index, -1,
                  "its weights are rounded, and its bias has the mean of what that changes");
    } else {
      ir::declined(graph, kPass, node.tflite_index, std::move(*problem));
    }
  }
}

}  // namespace clgpu::passes
