#include "ops/conv_geometry.hpp"
#include "ops/pad.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

// The attributes of a zero padding of height and width alone; null for every other node.
const ops::PadAttrs* spatial_zero_pad(const ir::Node& node) {
  const auto* pad = dynamic_cast<const ops::PadAttrs*>(node.attrs.get());
  if (pad == nullptr || pad->mode != ops::PadAttrs::Mode::kConstant || node.inputs.size() != 2)
    return nullptr;
  if (pad->before.size() != 4) return nullptr;
  for (const std::size_t axis : {std::size_t{0}, std::size_t{3}}) {
    if (pad->before[axis] != 0 || pad->after[axis] != 0) return nullptr;
  }
  return pad;
}

// The attributes of a convolution that pads by itself; null when it cannot take the padding.
ir::AttrsPtr padded(const ir::Node& node, const ops::PadAttrs& pad) {
  const int top = pad.before[1], bottom = pad.after[1], left = pad.before[2], right = pad.after[2];
  const auto* conv = dynamic_cast<const ops::ConvAttrs*>(node.attrs.get());
  if (conv == nullptr || conv->geometry.padding != ops::kPaddingValid) return nullptr;
  return with_padding(*conv, top, bottom, left, right);
}

}  // namespace

void fuse_pad(ir::Graph& graph) {
  const auto readers = ir::readers_of(graph);
  const auto is_output = ir::output_mask(graph);
  for (const ir::Node& node : graph.nodes) {
    const ops::PadAttrs* pad = spatial_zero_pad(node);
    if (pad == nullptr) continue;
    const auto result = static_cast<std::size_t>(node.outputs[0]);
    if (is_output[result] || readers[result].empty()) continue;
    // Every reader must take it, or the padded tensor is needed all the same.
    std::vector<ir::AttrsPtr> fused;
    for (const int reader : readers[result]) {
      const ir::Node& conv = graph.nodes[static_cast<std::size_t>(reader)];
      ir::AttrsPtr attrs = conv.inputs[0] == node.outputs[0] ? padded(conv, *pad) : nullptr;
      if (attrs == nullptr) break;
      fused.push_back(std::move(attrs));
    }
    if (fused.size() != readers[result].size()) continue;
    for (std::size_t i = 0; i < fused.size(); ++i) {
      ir::Node& conv = graph.nodes[static_cast<std::size_t>(readers[result][i])];
      conv.attrs = std::move(fused[i]);
      conv.inputs[0] = node.inputs[0];
      graph.fused[node.tflite_index] = conv.tflite_index;
    }
  }
  // The paddings have lost their readers: remove_dead takes them.
}

}  // namespace clgpu::passes
