#include <cstring>

#include "base/index.hpp"
#include "ops/families/pad.hpp"
#include "ops/families/pool.hpp"
#include "ops/families/strided_slice.hpp"
#include "ops/products/conv_geometry.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

using Mode = ops::PadAttrs::Mode;

constexpr const char* kPass = "fuse_pad";

// Whether a padding fills with the value that represents zero; in PADV2 that value must be a
// constant.
bool fills_with_zero(const ir::Graph& graph, const ir::Node& node) {
  if (node.inputs.size() == 2 || node.inputs[2] < 0) return true;
  const ir::Tensor& value = graph.tensor(node.inputs[2]);
  if (!value.is_constant() || value.constant->dtype != value.dtype) return false;
  // The bits of -0.0 differ, so this padding is not fused.
  const auto zero = static_cast<std::uint32_t>(value.is_quantized() ? value.zero_point() : 0);
  const std::size_t bytes = size_of(value.dtype);
  return bytes <= sizeof zero && std::memcmp(value.constant->data, &zero, bytes) == 0;
}

// The border that a padding of height and width alone, with zeros or mirrored, adds to the image;
// nothing for every other node.
std::optional<ops::Border> padded_border(const ir::Graph& graph, const ir::Node& node) {
  const auto* pad = dynamic_cast<const ops::PadAttrs*>(node.attrs.get());
  if (pad == nullptr || pad->mode == Mode::kSymmetric || !fills_with_zero(graph, node)) return {};
  if (pad->before.size() != 4) return {};
  for (const std::size_t axis : {std::size_t{0}, std::size_t{3}}) {
    if (pad->before[axis] != 0 || pad->after[axis] != 0) return {};
  }
  return ops::Border{pad->before[1], pad->after[1], pad->before[2], pad->after[2],
                     pad->mode == Mode::kReflect};
}

// What a crop of height and width alone removes; nothing for every other node.
std::optional<ops::Border> cropped_border(const ir::Node& node) {
  const auto* slice = dynamic_cast<const ops::SliceAttrs*>(node.attrs.get());
  if (slice == nullptr) return {};
  const auto margins = ops::margins(*slice);
  if (margins.size() != 4) return {};
  for (const std::size_t axis : {std::size_t{0}, std::size_t{3}}) {
    if (margins[axis].before != 0 || margins[axis].after != 0) return {};
  }
  return ops::Border{-margins[1].before, -margins[1].after, -margins[2].before, -margins[2].after,
                     false};
}

// Whether no element of a tensor is below zero.
bool is_positive(const ir::Graph& graph, int tensor, const std::vector<int>& writers) {
  using Activation = ir::Activation;
  const int writer = writers[uz(tensor)];
  if (writer < 0) return false;
  const ir::Epilogue& epilogue = graph.nodes[uz(writer)].epilogue;
  const Activation activation = epilogue.activation;
  return !epilogue.residual_after &&
         (activation == Activation::kRelu || activation == Activation::kRelu6 ||
          activation == Activation::kRelu0To1);
}

// The attributes of a reader of the padded tensor that takes over its border; null if it cannot.
ir::AttrsPtr with_border(const ir::Attrs& reader, const ops::Border& border, bool is_positive) {
  if (const auto* conv = dynamic_cast<const ops::ConvAttrs*>(&reader))
    return ops::with_border(*conv, border);
  const auto* pool = dynamic_cast<const ops::PoolAttrs*>(&reader);
  return pool != nullptr && is_positive ? ops::with_border(*pool, border) : nullptr;
}

}  // namespace

void fuse_pad(ir::Graph& graph) {
  const auto readers = ir::readers_of(graph);
  const auto writers = ir::writers_of(graph);
  const auto is_output = ir::output_mask(graph);
  for (const ir::Node& node : graph.nodes) {
    auto border = padded_border(graph, node);
    if (!border) border = cropped_border(node);
    if (!border) continue;
    const auto result = static_cast<std::size_t>(node.outputs[0]);
    if (readers[result].empty()) continue;
    // Every reader must be able to take the border; otherwise the padded tensor is needed anyway.
    std::vector<ir::AttrsPtr> fused;
    std::string problem;
    const bool positive = is_positive(graph, node.inputs[0], writers);
    if (is_output[result]) problem = "its result is a result of the partition";
    for (const int reader : readers[result]) {
      if (!problem.empty()) break;
      const ir::Node& window = graph.nodes[uz(reader)];
      const bool reads_it = window.inputs[0] == node.outputs[0] && window.attrs != nullptr;
      ir::AttrsPtr attrs = reads_it ? with_border(*window.attrs, *border, positive) : nullptr;
      if (attrs == nullptr) {
        problem = "the reader " + window.op + " (node " + std::to_string(window.tflite_index) +
                  ") cannot have this border";
      }
      fused.push_back(std::move(attrs));
    }
    if (!problem.empty()) {
      ir::declined(graph, kPass, node.tflite_index, problem);
      continue;
    }
    for (std::size_t i = 0; i < fused.size(); ++i) {
      ir::Node& window = graph.nodes[uz(readers[result][i])];
      window.attrs = std::move(fused[i]);
      window.inputs[0] = node.inputs[0];
      ir::applied(graph, kPass, node.tflite_index, window.tflite_index);
    }
  }
  // The paddings and crops have no readers now: remove_dead removes them.
}

}  // namespace clgpu::passes
