#include "ops/families/transpose_conv/transpose_conv.hpp"

namespace clgpu::ops::transpose_conv {

ConvWindows windows_of(const NodeContext& node) {
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  const ir::Shape& dst = node.output(0).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  ConvWindows at = windows(attrs.geometry, dst[1], dst[2], weights[1], weights[2]);
  if (attrs.rows) at.h = *attrs.rows;
  return at;
}

void push_geometry(kernel::Launch& launch, const NodeContext& node) {
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  const ConvWindows at = windows_of(node);
  push_conv_sizes(launch, node, attrs.image, kWeights, attrs.geometry);
  launch.i32(at.h.before).i32(at.w.before);
}

bool quantized(const NodeContext& node) { return node.output(0).is_quantized() || is_hybrid(node); }

kernel::Launch make_launch(const NodeContext& node, const char* file, const char* entry,
                           bool image) {
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  kernel::Launch launch(file, entry);
  set_conv_types(launch, node, attrs.image, attrs.bias);
  return image ? launch.src_image(attrs.image, node.input(attrs.image).storage)
               : launch.src(attrs.image);
}

void add_result(kernel::Candidate& candidate, kernel::Launch& launch, const NodeContext& node) {
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  if (!quantized(node)) {
    push_result(launch, node, attrs.bias);
    return;
  }
  // Each phase of the pixels has its own taps, so there is no single sum over the weights of a
  // channel.
  const ChannelTable table = channel_table(node, {attrs.image, kWeights, attrs.bias, 0},
                                           {node.output(0).shape[3], /*depth=*/0, 0, 0},
                                           static_cast<int>(candidate.scratch.size()));
  candidate.launches.push_back(table.launch);
  candidate.scratch.push_back(table.scales);
  candidate.scratch.push_back(table.result);
  push_channels(launch, node, table);
  push_result(launch, result_layout(node));
}

void push_zeros(kernel::Launch& launch, const NodeContext& node) {
  const int image = node.attrs<TransposeConvAttrs>().image;
  launch.i32(quantized(node) ? node.input(image).zero_point() : 0);
  launch.i32(node.output(0).is_quantized() ? node.input(kWeights).zero_point() : 0);
}

}  // namespace clgpu::ops::transpose_conv
