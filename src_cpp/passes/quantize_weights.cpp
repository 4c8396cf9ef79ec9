#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "base/index.hpp"
#include "ops/shared/common.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr float kLargest = 127;  // symmetric: -128 is not used

float element(const ir::Constant& constant, std::size_t i) {
  if (constant.dtype == DType::kF32) return static_cast<const float*>(constant.data)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(constant.data)[i];
  return constant.dtype == DType::kF16 ? half_to_float(bits) : bfloat_to_float(bits);
}

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
    scale = std::max(scale, std::fabs(element(*weights.constant, i)) / kLargest);
  }
  for (float& scale : scales) {
    if (scale == 0) scale = 1;
  }
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float steps = std::nearbyint(element(*weights.constant, i) / scales[channel(i)]);
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

bool are_finite(const ir::Constant& constant, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(element(constant, i))) return false;
  }
  return true;
}

// Why the weights of a node cannot be int8; empty if they can.
std::string problem_of(const ir::Graph& graph, const ir::Node& node) {
  const ir::Tensor& weights = graph.tensor(node.inputs[uz(node.kind->weights.slot)]);
  if (node.kind->weights.out_axis < 0) return "its weights have no axis of output channels";
  if (!weights.is_constant() || weights.dtype != DType::kF32) return "they are no constant floats";
  const DType type = weights.constant->dtype;
  if (!is_float(type)) return "they are no constant floats";
  const auto count = static_cast<std::size_t>(weights.shape.elements());
  if (count == 0 || weights.constant->bytes != count * size_of(type))
    return "they have no elements";
  if (!are_finite(*weights.constant, count)) return "they are not all finite";
  return {};
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
    node.inputs[uz(slot)] = static_cast<int>(graph.tensors.size()) - 1;
    ir::applied(graph, kPass, node.tflite_index, -1, "its weights are int8");
  }
}

}  // namespace clgpu::passes
