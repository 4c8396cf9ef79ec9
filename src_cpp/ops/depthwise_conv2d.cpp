// Room of DEPTHWISE_CONV_2D: each input channel has its own filters.
#include "ops/conv_geometry.hpp"

namespace clgpu::ops {
namespace {

constexpr int kDepthwiseConv2d = 4;
constexpr int kImage = 0, kWeights = 1, kBias = 2;  // inputs

// The depth multiplier is what the shapes say; runtimes do not rely on the parameter either.
ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  if (weights[0] != 1 || weights[3] % src[3] != 0) {
    throw ShapeError("weights " + weights.str() + " do not fit an image of " +
                     std::to_string(src[3]) + " channels");
  }
  check_bias_shape(node, kBias, weights[3]);
  const ConvWindows at =
      checked_windows(node.attrs<ConvAttrs>().geometry, src[1], src[2], weights[1], weights[2]);
  const ir::Shape dst{src[0], at.h.out, at.w.out, weights[3]};
  check_residual_shape(node, dst);
  return {dst};
}

kernel::Launch make_launch(const NodeContext& node, const char* file, const char* entry) {
  kernel::Launch launch(file, entry);
  set_conv_types(launch, node, kImage, kBias);
  launch.type("WEIGHTS_T", node.input(kWeights).storage);
  launch.src(kImage).src(kWeights);
  return push_result(launch, node, kBias);
}

void push_geometry(kernel::Launch& launch, const NodeContext& node) {
  const auto& geometry = node.attrs<ConvAttrs>().geometry;
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  const ConvWindows at = windows(geometry, src[1], src[2], weights[1], weights[2]);
  push_conv_sizes(launch, node, kImage, kWeights, geometry);
  launch.i32(geometry.dilation_h).i32(geometry.dilation_w).i32(at.h.before).i32(at.w.before);
}

kernel::Candidate naive(const NodeContext& node) {
  kernel::Launch launch = make_launch(node, "depthwise_conv2d/naive.cl", "depthwise_conv2d_naive");
  const std::int64_t elements = node.output(0).shape.elements();
  launch.i32(elements);
  push_geometry(launch, node);
  launch.range({uz(elements)}, {kElementwiseGroup});
  return {"naive", {launch}, {}};
}

// Needs a depth multiplier of 1.
kernel::Candidate direct(const NodeContext& node, const DeviceInfo& device) {
  constexpr int kTile = 4;  // pixels of a work-item
  const bool cpu = device.is_cpu();
  const ir::Shape& dst = node.output(0).shape;
  int width = cpu ? 16 : 4;
  while (dst[3] % width != 0) width = width > 4 ? width / 2 : 1;
  const std::int64_t group = cpu ? 1 : 8;

  kernel::Launch launch =
      make_launch(node, "depthwise_conv2d/direct.cl", "depthwise_conv2d_direct");
  launch.macro("VW", width).macro("PX", kTile).macro("WG_C", group).macro("WG_X", group);
  push_geometry(launch, node);
  const std::size_t rows = uz(dst.elements(0, 2));
  if (cpu) {
    launch.range({1, 1, rows}, {1, 1, 1});  // a whole row pays for starting a work-item
  } else {
    launch.range({uz(dst[3] / width), uz(ceil_div(dst[2], kTile)), rows},
                 {uz(group), uz(group), 1});
  }
  return {"direct", {launch}, {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  if (node.input(kImage).shape[3] != node.output(0).shape[3]) return {naive(node)};
  return {direct(node, device), naive(node)};
}

}  // namespace

extern const Family kDepthwiseConv2dFamily;
const Family kDepthwiseConv2dFamily{
    {"depthwise_conv2d", /*has_epilogue=*/true, /*is_view=*/false, /*residual=*/3},
    {{kDepthwiseConv2d, "DEPTHWISE_CONV_2D"}},
    {},
    /*core=*/true,
    import_convolution<tfl::DepthwiseConvParams>,
    infer,
    candidates};

}  // namespace clgpu::ops
