// Shared by the convolution families.
#include "ops/products/conv_geometry.hpp"

#include <algorithm>

namespace clgpu::ops {

namespace {

// Mirroring needs more elements along an axis than it adds on either side.
void check_mirror(const char* what, int before, int after, int size) {
  if (std::max(before, after) < size) return;
  throw ShapeError("paddings (" + std::to_string(before) + ", " + std::to_string(after) + ") of " +
                   std::to_string(size) + " " + what + " exceed what can be mirrored");
}

}  // namespace

ir::AttrsPtr with_border(const ConvAttrs& attrs, const Border& border) {
  if (attrs.geometry.padding != kPaddingValid) return nullptr;
  ConvAttrs result = attrs;
  ConvGeometry& g = result.geometry;
  // The image ends where the new border begins: the convolution's own border is outside of it.
  const bool adds = g.extra_top > 0 || g.extra_bottom > 0 || g.extra_left > 0 || g.extra_right > 0;
  const bool crops = border.top < 0 || border.bottom < 0 || border.left < 0 || border.right < 0;
  if (adds && (crops || border.reflect || g.reflect)) return nullptr;
  g.reflect = border.reflect;
  g.extra_top += border.top;
  g.extra_bottom += border.bottom;
  g.extra_left += border.left;
  g.extra_right += border.right;
  return share(result);
}

ConvWindows windows(const ConvGeometry& geometry, int in_h, int in_w, int filter_h, int filter_w) {
  ConvWindows result{window(geometry.padding, in_h + geometry.extra_top + geometry.extra_bottom,
                            filter_h, geometry.stride_h, geometry.dilation_h),
                     window(geometry.padding, in_w + geometry.extra_left + geometry.extra_right,
                            filter_w, geometry.stride_w, geometry.dilation_w)};
  result.h.before += geometry.extra_top;
  result.w.before += geometry.extra_left;
  return result;
}

ConvWindows checked_windows(const ConvGeometry& geometry, int in_h, int in_w, int filter_h,
                            int filter_w) {
  if (geometry.reflect) {
    check_mirror("rows", geometry.extra_top, geometry.extra_bottom, in_h);
    check_mirror("columns", geometry.extra_left, geometry.extra_right, in_w);
  }
  const ConvWindows result = windows(geometry, in_h, in_w, filter_h, filter_w);
  if (result.h.out < 1 || result.w.out < 1) {
    throw ShapeError("a filter of " + std::to_string(filter_h) + " x " + std::to_string(filter_w) +
                     " does not fit an image of " + std::to_string(in_h) + " x " +
                     std::to_string(in_w));
  }
  return result;
}

std::optional<Refusal> check_convolution(const tfl::NodeView& node, const ProductInputs& inputs,
                                         const ConvGeometry& geometry) {
  const tfl::TensorView image = node.input(inputs.src), weights = node.input(inputs.weights);
  if (auto refusal = check_rank(image, "input", 4, 4)) return refusal;
  if (auto refusal = check_rank(weights, "weights tensor", 4, 4)) return refusal;
  if (image.is_quantized() || node.output(0).is_quantized()) {
    if (auto refusal = check_quantized_product(node, inputs)) return refusal;
  } else if (weights.is_quantized()) {
    if (auto refusal = check_dynamic_range(node, inputs)) return refusal;
  } else {
    if (auto refusal = check_type(image, "input", {DType::kF32})) return refusal;
    if (auto refusal = check_type(weights, "weights tensor", {DType::kF32})) return refusal;
    if (node.has_input(inputs.bias)) {
      if (auto refusal = check_type(node.input(inputs.bias), "bias", {DType::kF32})) return refusal;
    }
  }
  if (geometry.padding != kPaddingSame && geometry.padding != kPaddingValid) {
    return wrong_value("the padding", geometry.padding, kPaddings);
  }
  if (geometry.stride_h < 1 || geometry.stride_w < 1)
    return Refusal{Why::kParameter, "a stride", "is below 1"};
  if (geometry.dilation_h < 1 || geometry.dilation_w < 1)
    return Refusal{Why::kParameter, "a dilation", "is below 1"};
  return std::nullopt;
}

void check_bias_shape(const NodeContext& node, int bias, int channels) {
  if (!node.has_input(bias) || node.input(bias).shape.elements() == channels) return;
  throw ShapeError("the bias " + node.input(bias).shape.str() +
                   " does not have one element for each of " + std::to_string(channels) +
                   " output channels");
}

void set_conv_types(kernel::Launch& launch, const NodeContext& node, int image, int bias) {
  launch.type("SRC_T", node.input(image).storage);
  set_result_types(launch, node, bias);
}

void set_border(kernel::Launch& launch, const ConvGeometry& geometry) {
  launch.macro("REFLECT", geometry.reflect ? 1 : 0);
}

void push_conv_sizes(kernel::Launch& launch, const NodeContext& node, int image, int weights,
                     const ConvGeometry& geometry) {
  const ir::Shape& src = node.input(image).shape;
  const ir::Shape& dst = node.output(0).shape;
  const ir::Shape& filter = node.input(weights).shape;
  for (const ir::Shape* shape : {&src, &dst}) {
    for (int axis = 1; axis < 4; ++axis) launch.i32((*shape)[axis]);
  }
  launch.i32(filter[1]).i32(filter[2]).i32(geometry.stride_h).i32(geometry.stride_w);
}

PackedWeights pack_weights(const NodeContext& node, int weights, int groups, int panel,
                           DType image_storage) {
  const ir::Tensor& filter = node.input(weights);
  const std::int64_t depth = filter.shape.elements(1, 4);
  const std::int64_t group_out = filter.shape[0] / groups;
  const std::int64_t panels = ceil_div(group_out, panel);
  // Half weights stay half, also on CPUs: a model with float16 weights is meant to be small.
  const DType storage = filter.storage;
  const std::int64_t elements = groups * panels * depth * panel;
  const std::int64_t row_bytes =
      filter.shape.elements(2, 4) * static_cast<std::int64_t>(size_of(image_storage));
  const std::int64_t zeros = ceil_div(row_bytes, static_cast<std::int64_t>(size_of(storage)));

  kernel::Launch launch("conv2d/pack_weights.cl", "conv2d_pack_weights");
  launch.macro("PANEL", panel).type("SRC_T", filter.storage).type("DST_T", storage);
  launch.src(weights).scratch_out(0).i32(zeros).i32(depth).i32(group_out).i32(panels);
  launch.range({uz(depth), uz(groups * panels + 1)}, {kElementwiseGroup, 1});
  const std::int64_t bytes = (elements + zeros) * static_cast<std::int64_t>(size_of(storage));
  return {launch, {bytes}, storage, static_cast<int>(panels), elements};
}

PackedWeights pack_words(const NodeContext& node, int image, int weights, int groups, int panel) {
  const ir::Tensor& filter = node.input(weights);
  const std::int64_t taps = filter.shape.elements(1, 3), group_in = filter.shape[3];
  const std::int64_t depth = taps * ceil_div(group_in, 4);
  const std::int64_t group_out = filter.shape[0] / groups;
  const std::int64_t panels = ceil_div(group_out, panel);
  const std::int64_t elements = groups * panels * depth * panel;
  const std::int64_t borders = filter.shape[2] * ceil_div(group_in, 4);

  kernel::Launch launch("conv2d/pack_words.cl", "conv2d_pack_words");
  launch.macro("PANEL", panel).type("SRC_T", filter.storage);
  launch.src(weights).scratch_out(0).i32(borders).i32(byte_word(node.input(image).zero_point()));
  launch.i32(taps).i32(group_in).i32(group_out).i32(panels);
  launch.range({uz(depth), uz(groups * panels + 1)}, {kElementwiseGroup, 1});
  const std::int64_t bytes = (elements + borders) * static_cast<std::int64_t>(sizeof(std::int32_t));
  return {launch, {bytes}, DType::kI32, static_cast<int>(panels), elements};
}

bool has_512_bit_registers(const DeviceInfo& device) {
  return device.is_cpu() && device.vector_width >= 16;
}

int cpu_vector(int channels) { return channels <= 4 ? 4 : channels <= 8 ? 8 : 16; }

}  // namespace clgpu::ops
