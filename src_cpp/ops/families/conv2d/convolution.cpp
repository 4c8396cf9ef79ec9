#include "ops/families/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {

Convolution::Convolution(const NodeContext& node_context, const DeviceInfo& device_info)
    : node(node_context), device(device_info), geometry(node.attrs<ConvAttrs>().geometry) {
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  const ir::Shape& dst = node.output(0).shape;
  batch = src[0];
  in_h = src[1], in_w = src[2], in_c = src[3];
  out_h = dst[1], out_w = dst[2], out_c = dst[3];
  filter_h = weights[1], filter_w = weights[2];
  group_in = weights[3];
  groups = in_c / group_in;
  group_out = out_c / groups;
  pixels = dst.elements(0, 3);
  depth = weights.elements(1, 4);
  at = windows(geometry, in_h, in_w, filter_h, filter_w);
}

bool Convolution::is_pointwise() const {
  const int first = -at.h.before;
  const bool rows = batch == 1 ? first >= 0 && first + out_h <= in_h : first == 0 && out_h == in_h;
  return filter_h == 1 && filter_w == 1 && groups == 1 && geometry.stride_h == 1 &&
         geometry.stride_w == 1 && rows && at.w.before == 0 && out_w == in_w;
}

void Convolution::push_geometry(kernel::Launch& launch) const {
  push_conv_sizes(launch, node, kImage, kWeights, geometry);
  launch.i32(geometry.dilation_h).i32(geometry.dilation_w).i32(at.h.before).i32(at.w.before);
}

ChannelTable Convolution::channels(int first, bool as_int8) const {
  const WeightsOrder order{out_c, depth, depth, 1};
  return channel_table(node, {kImage, kWeights, kBias, 0}, order, first, Requantization::kShifts,
                       as_int8);
}

void Convolution::push_quantized_result(kernel::Launch& launch, const ChannelTable& table) const {
  push_channels(launch, node, table);
  ops::push_result(launch, result_layout(node));
}

kernel::Candidate naive(const Convolution& conv) {
  kernel::Launch launch("conv2d/naive.cl", "conv2d_naive");
  conv.set_types(launch);
  const ir::Tensor& weights = conv.node.input(kWeights);
  set_weights_type(launch, "WEIGHTS_T", conv.node, weights.storage);
  const std::int64_t elements = conv.node.output(0).shape.elements();
  launch.src(kImage).src(kWeights);
  kernel::Candidate candidate{"naive", {}, {}};
  candidate.form = kernel::Form::kReference;
  if (conv.quantized()) {
    const ChannelTable channels = conv.channels(0);
    candidate.launches.push_back(channels.launch);
    candidate.scratch = {channels.scales, channels.result};
    conv.push_quantized_result(launch, channels);
  } else {
    conv.push_result(launch);
  }
  launch.i32(elements).i32(conv.group_in).i32(conv.group_out);
  conv.push_geometry(launch);
  launch.i32(conv.quantized() ? conv.node.input(kImage).zero_point() : 0);
  launch.i32(conv.quantized() && !conv.hybrid() ? weights.zero_point() : 0);
  launch.range({uz(elements)}, {kElementwiseGroup});
  candidate.launches.push_back(launch);
  return candidate;
}

}  // namespace clgpu::ops::conv2d
