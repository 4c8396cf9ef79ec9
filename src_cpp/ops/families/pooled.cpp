// Family of a pooling of what a convolution or a local response normalisation computes; the pass
// fuse_pooling makes the nodes, the runtimes know no such operation.
#include "ops/families/pooled.hpp"

#include <algorithm>
#include <utility>

#include "ir/fields.hpp"
#include "ops/families/local_response_normalization.hpp"
#include "ops/families/pool.hpp"
#include "ops/products/conv_geometry.hpp"
#include "ops/shared/parts.hpp"

namespace clgpu::ops {

extern const Family kConv2dFamily, kPoolFamily;

namespace {

constexpr int kImage = 0, kWeights = 1, kBias = 2;  // inputs
constexpr int kResult = 0, kBetween = 1;            // outputs
constexpr int kMostWindow = 4;                      // results of a convolution in a window

/// The original nodes, except for their tensors' numbers; the result of the first is output 1 of
/// the merged node, which has no readers.
struct PooledAttrs : ir::Attrs {
  ir::Node first, pooling;
  CLGPU_FIELDS(first, pooling)
};

/// The nodes, with their tensors' numbers in this graph, which may have been renumbered since.
PooledAttrs parts_of(const NodeContext& node) {
  PooledAttrs parts = node.attrs<PooledAttrs>();
  const ir::Node& whole = node.node();
  parts.first.inputs = whole.inputs;
  parts.first.outputs = {whole.outputs[kBetween]};
  parts.first.allows_tf32 = whole.allows_tf32;
  parts.first.bf16_pairs = whole.bf16_pairs;
  parts.pooling.inputs = {whole.outputs[kBetween]};
  parts.pooling.outputs = {whole.outputs[kResult]};
  parts.pooling.epilogue = whole.epilogue;
  return parts;
}

ir::Shapes infer(const NodeContext& node) {
  const PooledAttrs parts = parts_of(node);
  const ir::Shape image =
      family_of(parts.first).infer(NodeContext(node.graph(), parts.first)).at(0);
  const auto& attrs = static_cast<const PoolAttrs&>(*parts.pooling.attrs);
  const auto along = [&](int axis, int filter, int stride) {
    return window(attrs.padding, image[axis], filter, stride, 1).out;
  };
  const int h = along(1, attrs.filter_h, attrs.stride_h);
  const int w = along(2, attrs.filter_w, attrs.stride_w);
  if (h < 1 || w < 1) throw ShapeError("the filter is larger than the input " + image.str());
  return {{image[0], h, w, image[3]}, image};
}

kernel::Candidate convolution(const NodeContext& node, const PooledAttrs& parts) {
  constexpr int kItems = 256, kShort = 64;
  // With the result of the pooling as its own.
  ir::Node as_one = parts.first;
  as_one.outputs = {node.node().outputs[kResult]};
  const NodeContext conv(node.graph(), as_one);
  const auto& geometry = static_cast<const ConvAttrs&>(*as_one.attrs).geometry;
  const auto& pooling = static_cast<const PoolAttrs&>(*parts.pooling.attrs);
  const ir::Shape &src = conv.input(kImage).shape, &weights = conv.input(kWeights).shape;
  const ir::Shape& dst = node.output(kResult).shape;
  const ConvWindows at = windows(geometry, src[1], src[2], weights[1], weights[2]);
  const int lanes = weights.elements(1, 4) < kShort ? 8 : 32;
  int channels = 1;  // of a work-group
  while (channels < dst[3] && channels < kItems / lanes) channels *= 2;
  const int group_in = weights[3], groups = src[3] / group_in;
  kernel::Launch launch("pooled/convolution.cl", "pooled_convolution");
  set_conv_types(launch, conv, kImage, kBias);
  set_border(launch, geometry);
  set_weights_type(launch, "WEIGHTS_T", conv, conv.input(kWeights).storage);
  launch.macro("LANES", lanes).macro("WG_C", channels).macro("KV", group_in % 4 == 0 ? 4 : 1);
  launch.macro("POOL_H", pooling.filter_h).macro("POOL_W", pooling.filter_w);
  launch.macro("POOL_STRIDE_H", pooling.stride_h).macro("POOL_STRIDE_W", pooling.stride_w);
  launch.macro("KIND", pooling.kind);
  push_result(launch.src(kImage).src(kWeights), conv, kBias);
  launch.i32(group_in).i32(dst[3] / groups).i32(src[1]).i32(src[2]).i32(src[3]);
  launch.i32(dst[1]).i32(dst[2]).i32(dst[3]).i32(weights[1]).i32(weights[2]);
  launch.i32(geometry.stride_h).i32(geometry.stride_w);
  launch.i32(geometry.dilation_h).i32(geometry.dilation_w).i32(at.h.before).i32(at.w.before);
  launch.range({uz(dst.elements(0, 3) * lanes), uz(dst[3])}, {uz(lanes), uz(channels)});
  return {"fused", {launch}, {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const PooledAttrs parts = parts_of(node);
  std::vector<kernel::Candidate> list;
  if (parts.first.kind != &kConv2dFamily) {
    list = normalization_kernels(node, static_cast<const LrnAttrs&>(*parts.first.attrs),
                                 static_cast<const PoolAttrs*>(parts.pooling.attrs.get()));
  } else if (node.epilogue().empty()) {
    list = {convolution(node, parts)};
  }
  const std::vector<ir::Node> nodes = {parts.first, parts.pooling};
  const bool pays = pooled_pays(node.graph(), node.node(), device);
  list.insert(pays ? list.end() : list.begin(), separate(node, nodes, device, false));
  list.push_back(separate(node, nodes, device, true));
  return list;
}

double flops(const NodeContext& node) {
  const PooledAttrs parts = parts_of(node);
  return family_of(parts.first).flops(NodeContext(node.graph(), parts.first)) +
         family_of(parts.pooling).flops(NodeContext(node.graph(), parts.pooling));
}

}  // namespace

std::optional<ir::Node> pooled(const ir::Graph& graph, const ir::Node& first,
                               const ir::Node& pooling) {
  if (pooling.kind != &kPoolFamily || first.outputs.size() != 1 || first.tail != nullptr ||
      pooling.inputs[0] != first.outputs[0] || first.predicate != pooling.predicate ||
      first.predicate_element != pooling.predicate_element)
    return {};
  const auto& attrs = static_cast<const PoolAttrs&>(*pooling.attrs);
  const ir::Tensor& image = graph.tensor(first.outputs[0]);
  const bool adds = attrs.extra_top != 0 || attrs.extra_bottom != 0 || attrs.extra_left != 0 ||
                    attrs.extra_right != 0;
  if (adds || attrs.rows || image.is_quantized() || image.shape.rank() != 4) return {};
  if (first.kind == &kConv2dFamily) {
    const ir::Tensor& weights = graph.tensor(first.inputs[kWeights]);
    const bool fits = attrs.padding == kPaddingValid &&
                      attrs.filter_h * attrs.filter_w <= kMostWindow &&
                      attrs.stride_h >= attrs.filter_h && attrs.stride_w >= attrs.filter_w;
    if (!fits || !weights.is_constant() || weights.is_quantized() ||
        first.inputs.size() > kBias + 1 || !pooling.epilogue.empty())
      return {};
  } else if (first.kind == &kLocalResponseNormalizationFamily) {
    constexpr int kMostArea = 16;
    if (!reads_vectors(static_cast<const LrnAttrs&>(*first.attrs), image.shape) ||
        !first.epilogue.empty() || attrs.filter_h * attrs.filter_w > kMostArea)
      return {};
  } else {
    return {};
  }
  ir::Node node;
  node.kind = &kPooledFamily;
  node.op = first.op;
  node.tflite_index = first.tflite_index;
  node.inputs = first.inputs;
  node.outputs = {pooling.outputs[0], first.outputs[0]};
  node.epilogue = pooling.epilogue;
  node.allows_tf32 = first.allows_tf32;
  node.bf16_pairs = first.bf16_pairs;
  node.predicate = pooling.predicate;
  node.predicate_element = pooling.predicate_element;
  PooledAttrs parts;
  parts.first = first;
  parts.pooling = pooling;
  node.attrs = share(std::move(parts));
  return node;
}

bool pooled_pays(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device) {
  // Measured on an H200: with more products, tensor cores and a launch more are faster.
  constexpr std::int64_t kMostProducts = 1 << 19;
  if (device.is_cpu() || device.is_mobile()) return false;
  const auto& parts = static_cast<const PooledAttrs&>(*node.attrs);
  const auto& pooling = static_cast<const PoolAttrs&>(*parts.pooling.attrs);
  if (parts.first.kind != &kConv2dFamily) {
    // Each pixel is normalised once for each window that it is in: 2.25 times in AlexNet.
    constexpr int kMostTimes = 3;
    return pooling.filter_h * pooling.filter_w <= kMostTimes * pooling.stride_h * pooling.stride_w;
  }
  const ir::Shape& image = graph.tensor(node.outputs[kBetween]).shape;
  return image.elements() * graph.tensor(node.inputs[kWeights]).shape.elements(1, 4) <=
         kMostProducts;
}

const Family kPooledFamily = [] {
  Family family;
  family.name = "pooled";
  family.attrs = ir::attrs_type<PooledAttrs>();
  family.has_epilogue = true;
  family.writes_slices = true;
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.work_kind = WorkKind::kWindow;
  family.fuses = {&kConv2dFamily, &kPoolFamily, &kLocalResponseNormalizationFamily};
  return family;
}();

}  // namespace clgpu::ops
