#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "base/index.hpp"
#include "ops/families/quantize_rows.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

/// A table of the weights' scales, one for each output channel. It holds their bits, because no
/// pass may store them as half, and some padding at the end, because kernels read vectors.
int add_scales(ir::Graph& graph, int weights) {
  constexpr std::size_t kVector = 16;
  const ir::Quantization q = *graph.tensor(weights).quantization;
  const auto& dims = graph.tensor(weights).shape.dims();
  // With one scale, the number of channels is one of these.
  const std::size_t channels =
      q.per_axis() ? q.scales.size() : uz(*std::max_element(dims.begin(), dims.end()));
  std::vector<float> scales(channels, q.scales.front());
  if (q.per_axis()) scales = q.scales;
  scales.resize((channels + kVector - 1) / kVector * kVector, 0.0F);

  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(scales.size() * sizeof(float));
  std::memcpy(bytes->data(), scales.data(), bytes->size());
  ir::Tensor table;
  table.name = graph.tensor(weights).name + " scales";
  table.dtype = table.storage = DType::kI32;
  table.shape = ir::Shape({static_cast<int>(scales.size())});
  table.model_rank = 1;
  table.constant = std::make_shared<const ir::Constant>(
      ir::Constant{bytes->data(), bytes->size(), DType::kI32, bytes});
  graph.tensors.push_back(std::move(table));
  return static_cast<int>(graph.tensors.size()) - 1;
}

int add_tensor(ir::Graph& graph, const std::string& name, DType dtype, int rank) {
  ir::Tensor tensor;
  tensor.name = name;
  tensor.dtype = tensor.storage = dtype;
  tensor.model_rank = rank;
  if (dtype == DType::kI8) {
    tensor.quantization =
        std::make_shared<const ir::Quantization>(ir::Quantization{{1.0F}, {0}, 0});
  }
  graph.tensors.push_back(std::move(tensor));
  return static_cast<int>(graph.tensors.size()) - 1;
}

bool has_scales(const ir::Node& node) { return ir::input_of(node, ops::kWeightScales) >= 0; }

/// Makes the node's input int8; returns the node that computes it, or nothing if this one has no
/// hybrid arithmetic.
std::optional<ir::Node> quantize_input(ir::Graph& graph, ir::Node& node) {
  const int slot = node.inputs[uz(node.kind->weights.slot)];
  const ir::Tensor& weights = graph.tensor(slot);
  ops::QuantizeRowsAttrs rows;
  int source = 0;
  if (const auto* conv = dynamic_cast<const ops::ConvAttrs*>(node.attrs.get())) {
    // A convolution with a single scale has a symmetric kernel.
    const auto& scales = weights.quantization->scales;
    const bool alike = std::all_of(scales.begin(), scales.end(),
                                   [&](float scale) { return scale == scales.front(); });
    const bool each_channel = node.kind->weights.in_axis < 0;
    rows.asymmetric = each_channel || !alike || ops::is_grouped(graph, node);
    rows.border = conv->geometry;
    ops::ConvAttrs plain = *conv;
    plain.geometry.padding = ops::kPaddingValid;
    plain.geometry.extra_top = plain.geometry.extra_bottom = 0;
    plain.geometry.extra_left = plain.geometry.extra_right = 0;
    node.attrs = ops::share(plain);
  } else if (const auto* product = dynamic_cast<const ops::DynamicRangeAttrs*>(node.attrs.get())) {
    if (!product->allows_hybrid) return std::nullopt;
    rows.asymmetric = product->asymmetric;
    rows.depth = product->depth;
  } else {
    rows.asymmetric = true;
    source = ops::transposed_image(node);
  }
  const std::string name = graph.tensor(node.inputs[uz(source)]).name;
  const int rank = graph.tensor(node.inputs[uz(source)]).model_rank;
  const int integers = add_tensor(graph, name + " quantised", DType::kI8, rank);
  const int factors = add_tensor(graph, name + " factors", DType::kI32, 2);
  ir::Node quantize = ops::quantize_rows(rows, node.inputs[uz(source)], slot, integers, factors);
  quantize.tflite_index = node.tflite_index;
  node.inputs[uz(source)] = integers;
  ir::set_input(node, ops::kRowFactors, factors);
  return quantize;
}

}  // namespace

void dynamic_range(ir::Graph& graph, DynamicRange mode) {
  constexpr const char* kPass = "dynamic_range";
  std::vector<ir::Node> nodes;
  for (ir::Node& node : graph.nodes) {
    if (ops::has_int8_weights(graph, node) && !has_scales(node)) {
      const int scales = add_scales(graph, node.inputs[uz(node.kind->weights.slot)]);
      ir::set_input(node, ops::kWeightScales, scales);
      if (mode == DynamicRange::kHybrid) {
        if (auto quantize = quantize_input(graph, node)) {
          nodes.push_back(std::move(*quantize));
          ir::applied(graph, kPass, node.tflite_index, -1, "its input is quantised row by row");
        } else {
          ir::declined(graph, kPass, node.tflite_index,
                       "the reference kernels have no hybrid arithmetic for it");
        }
      } else {
        ir::applied(graph, kPass, node.tflite_index, -1, "its weights are scaled");
      }
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace clgpu::passes
