// Family of DEPTHWISE_CONV_2D: each input channel has its own filters. Its engines are in
// depthwise_conv2d/.
#include "ops/families/depthwise_conv2d/depthwise.hpp"
#include "ops/products/conv_rows.hpp"

namespace clgpu::ops {
namespace {

using namespace depthwise_conv2d;

constexpr int kDepthwiseConv2d = 4;

// The shapes determine the depth multiplier; runtimes do not rely on the parameter either.
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

kernel::Candidate naive(const NodeContext& node) {
  kernel::Candidate candidate =
      make_candidate(node, "naive", "depthwise_conv2d/naive.cl", "depthwise_conv2d_naive");
  candidate.form = kernel::Form::kReference;
  kernel::Launch& launch = candidate.launches.back();
  const std::int64_t elements = node.output(0).shape.elements();
  launch.i32(elements);
  push_geometry(launch, node);
  launch.range({uz(elements)}, {kElementwiseGroup});
  return candidate;
}

kernel::Candidate direct(const NodeContext& node, const DeviceInfo& device) {
  constexpr int kTile = 4;  // pixels per work-item
  const bool cpu = device.is_cpu();
  const ir::Shape& dst = node.output(0).shape;
  int width = vector_width(node, cpu ? 16 : 4);
  // Longer vectors are loaded whole or filled from one element, not gathered.
  while (width > 4 && multiplier(node) > 1 && multiplier(node) % width != 0) width /= 2;
  const std::int64_t group = cpu ? 1 : 8;

  kernel::Candidate candidate =
      make_candidate(node, "direct", "depthwise_conv2d/direct.cl", "depthwise_conv2d_direct");
  candidate.form = kernel::Form::kPlain;
  kernel::Launch& launch = candidate.launches.back();
  launch.macro("VW", width).macro("PX", kTile).macro("WG_C", group).macro("WG_X", group);
  launch.macro("WEIGHTS_SHIFTED", weights_zero(node) == 0 ? 0 : 1);
  launch.macro("MULTIPLIER", multiplier(node));
  push_geometry(launch, node);
  const std::size_t rows = uz(dst.elements(0, 2));
  if (cpu) {
    launch.range({1, 1, rows}, {1, 1, 1});  // only a whole row is worth starting a work-item
  } else {
    launch.range({uz(dst[3] / width), uz(ceil_div(dst[2], kTile)), rows},
                 {uz(group), uz(group), 1});
  }
  return candidate;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  // Sums of 64 bits are computed one at a time.
  if (node.output(0).dtype == DType::kI16 || is_hybrid(node)) return {naive(node)};
  std::vector<kernel::Candidate> result = blocks(node, device);
  result.push_back(direct(node, device));
  const auto named = quads(node, device);
  result.insert(device.is_mobile() ? result.begin() : result.end(), named.begin(), named.end());
  result.push_back(naive(node));
  return result;
}

double flops(const NodeContext& node) {
  const ir::Shape& weights = node.input(kWeights).shape;
  return 2.0 * static_cast<double>(node.output(0).shape.elements() * weights.elements(1, 3));
}

const IntegerForm kIntegers{{0}, false, clamping_problem};

}  // namespace

const Family kDepthwiseConv2dFamily = [] {
  Family family;
  family.name = "depthwise_conv2d";
  family.attrs = ir::attrs_type<ConvAttrs>();
  family.has_epilogue = true;
  family.residual = 3;
  family.slopes = 4;
  family.writes_slices = true;
  family.builtins = {{kDepthwiseConv2d, "DEPTHWISE_CONV_2D", 2, 1}};
  family.core = true;
  family.import = import_convolution<tfl::DepthwiseConvParams, /*channel_axis=*/3>;
  family.types = {"DST_T"};
  family.infer = infer;
  family.half_sums = true;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.narrow = kWeights;
  family.rows = &kConvRows;
  family.flops = flops;
  family.weights.slot = kWeights;
  family.weights.bias = kBias;
  family.weights.out_axis = 3;
  family.weights.stock_needs_bias = true;
  family.work_kind = WorkKind::kWindow;
  return family;
}();

}  // namespace clgpu::ops
