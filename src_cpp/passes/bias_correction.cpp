#include "passes/bias_correction.hpp"

#include <algorithm>
#include <cstring>

#include "base/index.hpp"
#include "ops/products/conv_geometry.hpp"
#include "passes/float_constants.hpp"

namespace clgpu::passes {
namespace {

// The weights of one output channel: one for each element of the filter and input channel, row by
// row. A product of matrices has a filter of one element.
struct Filter {
  int rows = 1, columns = 1, depth = 1;
};

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

// Element i of weights of the output channel o.
double weight_of(const ir::Tensor& weights, std::size_t i, std::size_t o) {
  if (weights.constant->dtype != DType::kI8) return double{element_of(*weights.constant, i)};
  const int stored = static_cast<const std::int8_t*>(weights.constant->data)[i];
  return double{weights.quantization->scales[o]} * stored;
}

}  // namespace

std::string problem_of_correction(const ir::Graph& graph, const ir::Node& node,
                                  const std::vector<float>& means) {
  const ir::Weights& kind = node.kind->weights;
  const ir::Shape& shape = graph.tensor(node.inputs[uz(kind.slot)]).shape;
  const bool conv = dynamic_cast<const ops::ConvAttrs*>(node.attrs.get()) != nullptr;
  if (!conv && (shape.rank() != 2 || kind.out_axis != 0))
    return "it is neither a convolution nor a product with a matrix";
  const int bias = node.inputs.size() > uz(kind.bias) ? node.inputs[uz(kind.bias)] : -1;
  if (bias < 0) return "it has no bias";
  const ir::Tensor& added = graph.tensor(bias);
  if (!added.is_constant() || added.dtype != DType::kF32 || !is_float(added.constant->dtype) ||
      added.shape.elements() != shape[kind.out_axis])
    return "its bias is no constant float for each output channel";
  const int channels = conv ? graph.tensor(node.inputs[0]).shape[3] : shape[1];
  if (static_cast<int>(means.size()) != channels)
    return "the plan has " + std::to_string(means.size()) + " means, its input " +
           std::to_string(channels) + " channels";
  return "";
}

ir::Tensor corrected_bias(ir::Graph& graph, const ir::Node& node, const ir::Tensor& rounded,
                          const std::vector<float>& means) {
  const ir::Tensor& exact = graph.tensor(node.inputs[uz(node.kind->weights.slot)]);
  const ir::Tensor& bias = graph.tensor(node.inputs[uz(node.kind->weights.bias)]);
  const ir::Shape& shape = exact.shape;
  const bool depthwise = dynamic_cast<const ops::ConvAttrs*>(node.attrs.get()) != nullptr &&
                         node.kind->weights.in_axis < 0;
  const std::size_t outputs = uz(shape[node.kind->weights.out_axis]);
  const Filter filter = shape.rank() == 4 ? Filter{shape[1], shape[2], depthwise ? 1 : shape[3]}
                                          : Filter{1, 1, shape[1]};
  const std::vector<double> share = shares_of(graph, node, filter);
  // How much of the filter lies outside of the image depends on its size.
  if (std::any_of(share.begin(), share.end(), [](double part) { return part != 1; }))
    ir::rely_on_shapes(graph);
  const std::size_t depth = uz(filter.depth), groups = means.size() / depth;
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(outputs * sizeof(float));
  for (std::size_t o = 0; o < outputs; ++o) {
    const std::size_t first = o * groups / outputs * depth;  // channel of its group
    double sum = element_of(*bias.constant, o);
    for (std::size_t tap = 0; tap < share.size(); ++tap) {
      for (std::size_t c = 0; c < depth; ++c) {
        const std::size_t i = depthwise ? tap * outputs + o : (o * share.size() + tap) * depth + c;
        const double lost = weight_of(exact, i, o) - weight_of(rounded, i, o);
        sum += lost * share[tap] * double{means[first + c]};
      }
    }
    const auto value = static_cast<float>(sum);
    std::memcpy(bytes->data() + o * sizeof value, &value, sizeof value);
  }
  ir::Tensor tensor = bias;
  tensor.constant = std::make_shared<const ir::Constant>(
      ir::Constant{bytes->data(), bytes->size(), DType::kF32, bytes});
  return tensor;
}

}  // namespace clgpu::passes
