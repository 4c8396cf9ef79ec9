#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "base/index.hpp"
#include "ops/products/conv_geometry.hpp"
#include "passes/float_constants.hpp"
#include "passes/pass.hpp"
#include "passes/small_tensors.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "round_weights";

// The weights of one output channel: one for each element of the filter and input channel, row by
// row. A product of matrices has a filter of one element.
struct Filter {
  int rows = 1, columns = 1, depth = 1;
};

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

// The share of a filter's positions at which each of its elements lies within the image.
std::vector<double> shares(const ops::Window& window, int in, int filter, int stride,
                           int dilation) {
  std::vector<double> found(uz(filter), 0.0);
  for (int tap = 0; tap < filter; ++tap) {
    for (int out = 0; out < window.out; ++out) {
      const int at = out * stride + tap * dilation - window.before;
      if (at >= 0 && at < in) found[uz(tap)] += 1.0 / window.out;
    }
  }
  return found;
}

// The mean that each element of the filter multiplies: what lies outside of an image is 0.
std::vector<double> shares_of(const ir::Graph& graph, const ir::Node& node, const Filter& filter) {
  const auto* conv = dynamic_cast<const ops::ConvAttrs*>(node.attrs.get());
  if (conv == nullptr || conv->geometry.reflect)
    return std::vector<double>(uz(filter.rows) * uz(filter.columns), 1.0);
  const ops::ConvGeometry& g = conv->geometry;
  const ir::Shape& image = graph.tensor(node.inputs[0]).shape;
  const ops::ConvWindows at = ops::windows(g, image[1], image[2], filter.rows, filter.columns);
  const auto rows = shares(at.h, image[1], filter.rows, g.stride_h, g.dilation_h);
  const auto columns = shares(at.w, image[2], filter.columns, g.stride_w, g.dilation_w);
  std::vector<double> both;
  for (const double row : rows) {
    for (const double column : columns) both.push_back(row * column);
  }
  return both;
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
    if (std::string problem = problem_of(node, means->second); !problem.empty()) return problem;
    const int bias = node.inputs[uz(kind.bias)];
    auto [found, is_new] = rounded_.emplace(weights, static_cast<int>(graph_.tensors.size()));
    if (is_new) {
      ir::Tensor tensor = rounded(before, wide ? DType::kBF16 : DType::kF16);
      graph_.tensors.push_back(std::move(tensor));
    }
    ir::Tensor corrected = corrected_bias(node, weights, found->second, bias, means->second);
    graph_.tensors.push_back(std::move(corrected));
    node.inputs[uz(kind.slot)] = found->second;
    node.inputs[uz(kind.bias)] = static_cast<int>(graph_.tensors.size()) - 1;
    return "";
  }

 private:
  bool is_depthwise(const ir::Node& node) const {
    return dynamic_cast<const ops::ConvAttrs*>(node.attrs.get()) != nullptr &&
           node.kind->weights.in_axis < 0;
  }

  std::string problem_of(const ir::Node& node, const std::vector<float>& means) const {
    const ir::Weights& kind = node.kind->weights;
    const ir::Shape& shape = graph_.tensor(node.inputs[uz(kind.slot)]).shape;
    const bool conv = dynamic_cast<const ops::ConvAttrs*>(node.attrs.get()) != nullptr;
    if (!conv && (shape.rank() != 2 || kind.out_axis != 0))
      return "it is neither a convolution nor a product with a matrix";
    const int bias = node.inputs.size() > uz(kind.bias) ? node.inputs[uz(kind.bias)] : -1;
    if (bias < 0) return "it has no bias";
    const ir::Tensor& added = graph_.tensor(bias);
    if (!added.is_constant() || added.dtype != DType::kF32 || !is_float(added.constant->dtype) ||
        added.shape.elements() != shape[kind.out_axis])
      return "its bias is no constant float for each output channel";
    const int channels = conv ? graph_.tensor(node.inputs[0]).shape[3] : shape[1];
    if (static_cast<int>(means.size()) != channels)
      return "the plan has " + std::to_string(means.size()) + " means, its input " +
             std::to_string(channels) + " channels";
    return "";
  }

  // bias + sum of (weights - rounded weights) * means.
  ir::Tensor corrected_bias(const ir::Node& node, int weights, int rounded, int bias,
                            const std::vector<float>& means) const {
    const ir::Constant &exact = *graph_.tensor(weights).constant,
                       &stored = *graph_.tensor(rounded).constant;
    const ir::Shape& shape = graph_.tensor(weights).shape;
    const bool depthwise = is_depthwise(node);
    const std::size_t outputs = uz(shape[node.kind->weights.out_axis]);
    const Filter filter = shape.rank() == 4 ? Filter{shape[1], shape[2], depthwise ? 1 : shape[3]}
                                            : Filter{1, 1, shape[1]};
    const std::vector<double> share = shares_of(graph_, node, filter);
    const std::size_t depth = uz(filter.depth), groups = means.size() / depth;
    const auto bytes = std::make_shared<std::vector<std::uint8_t>>(outputs * sizeof(float));
    for (std::size_t o = 0; o < outputs; ++o) {
      const std::size_t first = o * groups / outputs * depth;  // channel of its group
      double sum = element_of(*graph_.tensor(bias).constant, o);
      for (std::size_t tap = 0; tap < share.size(); ++tap) {
        for (std::size_t c = 0; c < depth; ++c) {
          const std::size_t i =
              depthwise ? tap * outputs + o : (o * share.size() + tap) * depth + c;
          const double lost = double{element_of(exact, i)} - double{element_of(stored, i)};
          sum += lost * share[tap] * double{means[first + c]};
        }
      }
      const auto value = static_cast<float>(sum);
      std::memcpy(bytes->data() + o * sizeof value, &value, sizeof value);
    }
    ir::Tensor tensor = graph_.tensor(bias);
    tensor.constant = std::make_shared<const ir::Constant>(
        ir::Constant{bytes->data(), bytes->size(), DType::kF32, bytes});
    return tensor;
  }

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
