#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "passes/bias_correction.hpp"
#include "passes/float_constants.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr float kLargest = 127;  // symmetric: -128 is not used

// The weights with a scale for each index along `axis`; they have to be finite.
ir::Tensor quantized(const ir::Tensor& weights, int axis) {
  const auto count = static_cast<std::size_t>(weights.shape.elements());
  const auto inner =
      static_cast<std::size_t>(weights.shape.elements(axis + 1, weights.shape.rank()));
  const std::size_t channels = uz(weights.shape[axis]);
  const auto channel = [&](std::size_t i) { return i / inner % channels; };
  std::vector<float> scales(channels, 0.0F);
  for (std::size_t i = 0; i < count; ++i) {
    float& scale = scales[channel(i)];
    scale = std::max(scale, std::fabs(element_of(*weights.constant, i)) / kLargest);
  }
  for (float& scale : scales) {
    if (scale == 0) scale = 1;
  }
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float steps = std::nearbyint(element_of(*weights.constant, i) / scales[channel(i)]);
    (*bytes)[i] =
        static_cast<std::uint8_t>(static_cast<std::int8_t>(std::clamp(steps, -kLargest, kLargest)));
  }
  ir::Tensor tensor = weights;
  tensor.dtype = tensor.storage = DType::kI8;
  std::vector<std::int32_t> zeros(channels, 0);
  tensor.quantization = std::make_shared<const ir::Quantization>(
      ir::Quantization{std::move(scales), std::move(zeros), axis});
  tensor.constant = std::make_shared<const ir::Constant>(
      ir::Constant{bytes->data(), bytes->size(), DType::kI8, bytes});
  return tensor;
}

// Why the weights of a node cannot be int8; empty if they can.
std::string problem_of(const ir::Graph& graph, const ir::Node& node) {
  const ir::Tensor& weights = graph.tensor(node.inputs[uz(node.kind->weights.slot)]);
  if (node.kind->weights.out_axis < 0) return "its weights have no axis of output channels";
  return problem_of_floats(weights);
}

// Gives the bias the mean of what int8 weights change, where the plan has means of what they
// multiply.
bool correct(ir::Graph& graph, ir::Node& node, int stored, const PrecisionPlan& plan) {
  const int bias = node.kind->weights.bias;
  if (bias < 0 || node.kind->weights.slot == 0 || node.inputs[0] < 0) return false;
  const auto means = plan.means.find(graph.tensor(node.inputs[0]).tflite_id);
  if (means == plan.means.end()) return false;
  if (!problem_of_correction(graph, node, means->second).empty()) return false;
  ir::Tensor tensor = corrected_bias(graph, node, graph.tensor(stored), means->second);
  graph.tensors.push_back(std::move(tensor));
  node.inputs[uz(bias)] = static_cast<int>(graph.tensors.size()) - 1;
  return true;
}

}  // namespace

void quantize_weights(ir::Graph& graph, const PrecisionPlan& plan) {
  constexpr const char* kPass = "quantize_weights";
  for (ir::Node& node : graph.nodes) {
    const int slot = node.kind->weights.slot;
    if (slot < 0 || node.inputs.size() <= uz(slot) || node.inputs[uz(slot)] < 0) continue;
    const ir::Tensor& weights = graph.tensor(node.inputs[uz(slot)]);
    if (plan.int8.count(weights.tflite_id) == 0) continue;
    if (graph.tensor(node.outputs[0]).dtype != DType::kF32) continue;
    if (std::string problem = problem_of(graph, node); !problem.empty()) {
      ir::declined(graph, kPass, node.tflite_index, std::move(problem));
      continue;
    }
    graph.tensors.push_back(quantized(weights, node.kind->weights.out_axis));
    const int stored = static_cast<int>(graph.tensors.size()) - 1;
    const bool corrected = correct(graph, node, stored, plan);
    node.inputs[uz(slot)] = stored;
    ir::applied(graph, kPass, node.tflite_index, -1,
                corrected ? "its weights are int8, and its bias has the mean of what that changes"
                          : "its weights are int8");
  }
}

}  // namespace clgpu::passes
