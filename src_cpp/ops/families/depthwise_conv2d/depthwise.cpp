#include "ops/families/depthwise_conv2d/depthwise.hpp"

namespace clgpu::ops::depthwise_conv2d {

bool quantized(const NodeContext& node) { return node.output(0).is_quantized() || is_hybrid(node); }

kernel::Candidate make_candidate(const NodeContext& node, const std::string& name, const char* file,
                                 const char* entry, std::optional<bool> vectors, Images images) {
  kernel::Candidate candidate{name, {}, {}};
  bool quick = false;
  kernel::Launch launch(file, entry);
  set_conv_types(launch, node, kImage, kBias);
  set_weights_type(launch, "WEIGHTS_T", node, node.input(kWeights).storage);
  set_border(launch, node.attrs<ConvAttrs>().geometry);
  const auto push = [&](int input, bool image) {
    const DType type = node.input(input).storage;
    image ? launch.src_image(input, type) : launch.src(input);
  };
  push(kImage, images.image);
  push(kWeights, images.weights);
  if (quantized(node)) {
    const ir::Shape& weights = node.input(kWeights).shape;
    const std::int64_t channels = weights[3];
    const ChannelTable table =
        channel_table(node, {kImage, kWeights, kBias, 3},
                      {channels, weights.elements(1, 3), /*step_o=*/1, /*step_k=*/channels}, 0);
    candidate.launches.push_back(table.launch);
    candidate.scratch = {table.scales, table.result};
    push_channels(launch, node, table);
    push_result(launch, result_layout(node));
    quick = table.quick;
  } else {
    push_result(launch, node, kBias);
  }
  if (vectors) launch.macro("QUICK", quick && *vectors ? 1 : 0);
  candidate.launches.push_back(launch);
  return candidate;
}

std::int32_t weights_zero(const NodeContext& node) {
  return quantized(node) ? node.input(kWeights).zero_point() : 0;
}

void push_zeros(kernel::Launch& launch, const NodeContext& node) {
  launch.i32(quantized(node) ? node.input(kImage).zero_point() : 0);
  launch.i32(weights_zero(node));
}

void push_geometry(kernel::Launch& launch, const NodeContext& node) {
  const auto& geometry = node.attrs<ConvAttrs>().geometry;
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  const ConvWindows at = windows(geometry, src[1], src[2], weights[1], weights[2]);
  push_conv_sizes(launch, node, kImage, kWeights, geometry);
  launch.i32(geometry.dilation_h).i32(geometry.dilation_w).i32(at.h.before).i32(at.w.before);
  push_zeros(launch, node);
}

int multiplier(const NodeContext& node) {
  return node.output(0).shape[3] / node.input(kImage).shape[3];
}

int vector_width(const NodeContext& node, int most) {
  const int channels = node.output(0).shape[3];
  int width = most;
  while (channels % width != 0) width = width > 4 ? width / 2 : 1;
  return width;
}

}  // namespace clgpu::ops::depthwise_conv2d
