// Family of a depthwise convolution followed by a 1x1 convolution; the pass fuse_separable makes
// the nodes, the runtimes know no such operation.
#include "ops/families/separable_conv2d.hpp"

#include <algorithm>

#include "ops/products/conv_rows.hpp"
#include "ops/shared/parts.hpp"

namespace clgpu::ops {

namespace separable_conv2d {

Parts parts_of(const NodeContext& node) {
  const auto& attrs = node.attrs<SeparableAttrs>();
  const ir::Node& whole = node.node();
  Parts parts{attrs.depthwise, attrs.pointwise, attrs.expand, whole};
  ir::Node &depthwise = parts.depthwise, &pointwise = parts.pointwise;
  for (std::size_t i = 0; i < depthwise.inputs.size(); ++i) depthwise.inputs[i] = whole.inputs[i];
  depthwise.outputs = {whole.outputs[kBetween]};
  pointwise.inputs[0] = whole.outputs[kBetween];
  pointwise.inputs.resize(1);
  const auto end =
      whole.inputs.begin() + std::min<int>(kExpandWeights, static_cast<int>(whole.inputs.size()));
  pointwise.inputs.insert(pointwise.inputs.end(), whole.inputs.begin() + kWeights, end);
  if (node.slopes() >= 0) ir::set_input(pointwise, pointwise.kind->slopes, whole.inputs[kSlopes]);
  pointwise.outputs = {whole.outputs[kResult]};
  pointwise.epilogue = whole.epilogue;
  pointwise.allows_tf32 = whole.allows_tf32;
  pointwise.bf16_pairs = whole.bf16_pairs;
  if (!parts.expand) return parts;

  ir::Node& expand = *parts.expand;
  for (std::size_t i = 1; i < expand.inputs.size(); ++i)
    expand.inputs[i] = whole.inputs[uz(kExpandWeights) + i - 1];
  expand.inputs[0] = whole.inputs[kImage];
  expand.outputs = {whole.outputs[kExpanded]};
  depthwise.inputs[0] = whole.outputs[kExpanded];
  parts.pair.inputs.resize(kExpandWeights);
  if (node.slopes() >= 0) ir::set_input(parts.pair, kSlopes, whole.inputs[kSlopes]);
  parts.pair.inputs[kImage] = whole.outputs[kExpanded];
  parts.pair.outputs.resize(kExpanded);
  SeparableAttrs two = attrs;
  two.expand.reset();
  parts.pair.attrs = share(std::move(two));
  return parts;
}

}  // namespace separable_conv2d

namespace {

using namespace separable_conv2d;

constexpr int kVector = 4;  // channels that the fused kernel reads at once

kernel::Candidate apart(const NodeContext& node, const DeviceInfo& device, bool plain) {
  const Parts parts = parts_of(node);
  std::vector<ir::Node> nodes;
  if (parts.expand) nodes.push_back(*parts.expand);
  if (parts.expand && !plain) {
    nodes.push_back(parts.pair);
  } else {
    nodes.insert(nodes.end(), {parts.depthwise, parts.pointwise});
  }
  return separate(node, nodes, device, plain);
}

struct Tile {
  int width, height;  ///< pixels of a work-group
  int channels;       ///< output channels of a work-group
  int items;
  int chunk;  ///< intermediate channels at a time
};

kernel::Candidate fused(const NodeContext& node, const Tile& tile) {
  const auto& attrs = node.attrs<SeparableAttrs>();
  const auto& geometry = static_cast<const ConvAttrs&>(*attrs.depthwise.attrs).geometry;
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& filter = node.input(kFilter).shape;
  const ir::Shape& dst = node.output(kResult).shape;
  const ConvWindows at = windows(geometry, src[1], src[2], filter[1], filter[2]);
  const auto packed = pack_weights(node, kWeights, 1, tile.channels, DType::kF32);
  const std::int64_t tiles_x = ceil_div(dst[2], tile.width);
  const std::int64_t tiles_y = ceil_div(dst[1], tile.height);
  const bool has_bias = node.has_input(kFilterBias);

  kernel::Launch launch("separable_conv2d/fused.cl", "separable_conv2d_fused");
  set_conv_types(launch, node, kImage, kBias);
  set_border(launch, geometry);
  launch.type("DEPTH_T", node.input(kFilter).storage).type("PACKED_T", packed.storage);
  launch.type("DEPTH_BIAS_T", has_bias ? node.input(kFilterBias).storage : DType::kF32);
  launch.macro("DEPTH_BIAS", has_bias ? 1 : 0);
  launch.macro("DEPTH_ACT", static_cast<int>(attrs.depthwise.epilogue.activation));
  launch.macro("TILE_W", tile.width).macro("TILE_H", tile.height).macro("TN", tile.channels);
  launch.macro("ITEMS", tile.items).macro("CHUNK", std::min(tile.chunk, src[3]));
  launch.macro("FILTER_H", filter[1]).macro("FILTER_W", filter[2]);
  launch.macro("STRIDE_H", geometry.stride_h).macro("STRIDE_W", geometry.stride_w);
  launch.src(kImage).src(kFilter);
  if (has_bias) launch.src(kFilterBias);
  push_result(launch.scratch_in(0), node, kBias).i32(tiles_x).i32(tiles_y);
  launch.i32(src[1]).i32(src[2]).i32(src[3]).i32(dst[1]).i32(dst[2]).i32(dst[3]);
  launch.i32(at.h.before).i32(at.w.before);
  launch.range({uz(dst[0] * tiles_x * tiles_y * tile.items), uz(packed.panels)}, {uz(tile.items)});
  const std::string name =
      "fused_" + std::to_string(tile.width * tile.height) + "x" + std::to_string(tile.channels);
  return {name, {packed.launch, launch}, {packed.scratch}};
}

/// Whether fused.cl is better than two launches.
bool fused_float_pays(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device) {
  // A single launch saves a pass over memory, but costs arrays and local memory; on mobile GPUs
  // both are slow or missing.
  if (device.is_mobile()) return false;
  // Measured on an H200: with more channels in between, each group of output channels filters too
  // many of them again; with fewer pixels, the two launches share the sums among more work-items.
  // Tensor cores, which this kernel does not use, are faster unless there is little to multiply.
  // Its products are slower than those of a launch of their own, which matters if there are many.
  constexpr std::int64_t kManyPixels = 2048, kManyProducts = 100'000'000;
  const bool tensor_cores =
      (ir::allows_tf32(graph, node) || ir::allows_bf16_pairs(graph, node)) && device.mma_f16;
  const int most = tensor_cores ? 32 : 160;
  const ir::Shape& image = graph.tensor(node.inputs[kImage]).shape;
  const int results = graph.tensor(node.inputs[kWeights]).shape[0];
  const auto& attrs = static_cast<const SeparableAttrs&>(*node.attrs);
  const auto& geometry = static_cast<const ConvAttrs&>(*attrs.depthwise.attrs).geometry;
  const std::int64_t pixels = image.elements(0, 3) / (geometry.stride_h * geometry.stride_w);
  return !device.is_cpu() && image[3] <= most && (!tensor_cores || results <= most) &&
         pixels >= kManyPixels && pixels * image[3] * results <= kManyProducts;
}

ir::Shapes infer(const NodeContext& node) {
  const Parts parts = parts_of(node);
  const ir::Shape& weights = node.input(kWeights).shape;
  check_bias_shape(node, kBias, weights[0]);
  const auto whole = [&](ir::Shapes inner) {
    ir::Shape result = inner[0];
    result[3] = weights[0];
    check_residual_shape(node, result);
    inner.insert(inner.begin(), result);
    return inner;
  };
  if (parts.expand) {
    const ir::Shape image =
        family_of(*parts.expand).infer(NodeContext(node.graph(), *parts.expand)).at(0);
    const ir::Shape& filter = node.input(kFilter).shape;
    const auto& geometry = static_cast<const ConvAttrs&>(*parts.depthwise.attrs).geometry;
    const ConvWindows at = checked_windows(geometry, image[1], image[2], filter[1], filter[2]);
    return whole({{image[0], at.h.out, at.w.out, image[3]}, image});
  }
  if (node.input(kImage).shape[3] != weights[3]) {
    throw ShapeError("an image of " + std::to_string(node.input(kImage).shape[3]) +
                     " channels does not fit weights " + weights.str());
  }
  return whole(
      {family_of(parts.depthwise).infer(NodeContext(node.graph(), parts.depthwise)).at(0)});
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  std::vector<kernel::Candidate> result;
  if (node.output(kResult).is_quantized()) {
    if (device.mma_s8) result = fused_int8(node, device);
    result.push_back(apart(node, device, false));
    result.push_back(apart(node, device, true));
    return result;
  }
  result = fused_half(node, device);
  const bool half = !result.empty() && result.front().refusal.empty();
  // Seen to be faster in networks at batch 1 only, and not yet with a product before.
  const bool half_pays = half && node.output(kResult).shape[0] == 1 &&
                         !node.attrs<SeparableAttrs>().expand &&
                         result.front().microseconds < apart_microseconds(node, device);
  if (node.attrs<SeparableAttrs>().expand) {
    result.insert(half_pays ? result.end() : result.begin(), apart(node, device, false));
    result.push_back(apart(node, device, true));
    return result;
  }
  // Devices with less local memory may have only 32 KB.
  const int chunk = device.local_bytes >= 48 * 1024 ? 128 : 64;
  const bool wide = node.output(kResult).shape[3] > 32;
  if (wide) result.push_back(fused(node, {16, 4, 64, 256, chunk}));
  result.push_back(fused(node, {4, 4, 32, 128, 2 * chunk}));
  result.push_back(fused(node, {8, 4, 32, 128, chunk}));
  const bool pays = half ? half_pays : fused_float_pays(node.graph(), node.node(), device);
  result.insert(pays ? result.end() : result.begin(), apart(node, device, false));
  result.push_back(apart(node, device, true));
  return result;
}

// A block's results between have other rows than its result, so it has no bands.
int unit(const NodeContext& node) { return node.attrs<SeparableAttrs>().expand ? 0 : 1; }

RowNeed need(const NodeContext& node, int input, RowRange rows) {
  const auto& depthwise = *node.attrs<SeparableAttrs>().depthwise.attrs;
  if (input == kImage)
    return conv_need(node, static_cast<const ConvAttrs&>(depthwise).geometry, kFilter, rows);
  if (input == kResidual) return {RowNeed::Kind::kExact, rows};
  return {};
}

ir::AttrsPtr band_attrs(const NodeContext& node, const RowBand& band) {
  SeparableAttrs result = node.attrs<SeparableAttrs>();
  result.depthwise.attrs =
      share(conv_band(node, static_cast<const ConvAttrs&>(*result.depthwise.attrs), kFilter,
                      node.output(kResult).shape[2], band.rows, band.inputs.at(kImage)));
  return share(std::move(result));
}

const RowRules kRows{unit, need, band_attrs};

double flops(const NodeContext& node) {
  double sum = 0;
  const Parts parts = parts_of(node);
  std::vector<ir::Node> nodes = {parts.depthwise, parts.pointwise};
  if (parts.expand) nodes.push_back(*parts.expand);
  for (const ir::Node& part : nodes) sum += family_of(part).flops(NodeContext(node.graph(), part));
  return sum;
}

}  // namespace

std::optional<ir::Node> separable(const ir::Graph& graph, const ir::Node& depthwise,
                                  const ir::Node& pointwise) {
  if (depthwise.kind != &kDepthwiseConv2dFamily || pointwise.kind != &kConv2dFamily) return {};
  if (pointwise.inputs[0] != depthwise.outputs[0]) return {};
  const ir::Tensor& image = graph.tensor(depthwise.inputs[0]);
  const ir::Tensor& filter = graph.tensor(depthwise.inputs[1]);
  const ir::Tensor& weights = graph.tensor(pointwise.inputs[1]);
  // Constants never change their shape; for other tensors only the channels matter here.
  if (!filter.is_constant() || !weights.is_constant() || image.shape.rank() != 4) return {};
  // Integer weights with float activations have their own kernels.
  const bool integers = graph.tensor(pointwise.outputs[0]).is_quantized();
  if (!integers && (filter.is_quantized() || weights.is_quantized())) return {};
  const int channels = weights.shape[3];
  if (image.shape[3] != channels || filter.shape[3] != channels || channels % kVector != 0) {
    return {};
  }
  const auto& depth = static_cast<const ConvAttrs&>(*depthwise.attrs).geometry;
  const auto& point = static_cast<const ConvAttrs&>(*pointwise.attrs).geometry;
  const bool whole = point.extra_top == 0 && point.extra_bottom == 0 && point.extra_left == 0 &&
                     point.extra_right == 0;
  const bool is_point = weights.shape[1] == 1 && weights.shape[2] == 1 && point.stride_h == 1 &&
                        point.stride_w == 1 && whole;
  const bool takes = filter.shape[1] <= 5 && filter.shape[2] <= 5 && depth.stride_h <= 2 &&
                     depth.stride_w <= 2 && depth.dilation_h == 1 && depth.dilation_w == 1;
  const bool has_residual = depthwise.inputs.size() > 3;  // or slopes
  // The kernel has only one macro for a slope.
  const bool leaky = depthwise.epilogue.activation == ir::Activation::kLeakyRelu;
  if (!is_point || !takes || has_residual || leaky) return {};

  const ir::Tensor& result = graph.tensor(pointwise.outputs[0]);
  if (result.is_quantized()) {
    const bool int8 = image.dtype == DType::kI8 && filter.dtype == DType::kI8 &&
                      weights.dtype == DType::kI8 && result.dtype == DType::kI8;
    if (!int8 || pointwise.inputs.size() > 3 || depthwise.tail != nullptr) return {};
  }

  ir::Node node;
  node.kind = &kSeparableConv2dFamily;
  node.op = depthwise.op;
  node.tflite_index = depthwise.tflite_index;
  node.inputs.assign(kResidual, -1);
  std::copy(depthwise.inputs.begin(), depthwise.inputs.end(), node.inputs.begin());
  for (int i = 1; i < static_cast<int>(pointwise.inputs.size()); ++i) {
    const bool is_slopes = i == pointwise.kind->slopes;
    const int slot = is_slopes ? kSlopes : kWeights + i - 1;  // weights, bias, residual
    ir::set_input(node, slot, pointwise.inputs[uz(i)]);
  }
  node.outputs = {pointwise.outputs[0], depthwise.outputs[0]};
  node.epilogue = pointwise.epilogue;
  node.allows_tf32 = pointwise.allows_tf32;
  node.bf16_pairs = pointwise.bf16_pairs;
  SeparableAttrs attrs;
  attrs.depthwise = depthwise;
  attrs.pointwise = pointwise;
  node.attrs = share(std::move(attrs));
  return node;
}

std::optional<ir::Node> inverted(const ir::Graph& graph, const ir::Node& expand,
                                 const ir::Node& pair) {
  if (expand.kind != &kConv2dFamily || expand.inputs.size() > 3 || expand.tail != nullptr)
    return {};
  const ir::Tensor& weights = graph.tensor(expand.inputs[1]);
  const auto& geometry = static_cast<const ConvAttrs&>(*expand.attrs).geometry;
  const bool whole = geometry.extra_top == 0 && geometry.extra_bottom == 0 &&
                     geometry.extra_left == 0 && geometry.extra_right == 0;
  const bool is_point = weights.shape[1] == 1 && weights.shape[2] == 1 && geometry.stride_h == 1 &&
                        geometry.stride_w == 1 && whole;
  const bool leaky = expand.epilogue.activation == ir::Activation::kLeakyRelu;
  const bool is_float = !graph.tensor(pair.outputs[kResult]).is_quantized() &&
                        !weights.is_quantized() && weights.is_constant();
  if (!is_point || !is_float || leaky) return {};
  // The channels of a group of a convolution in groups are not all of the image.
  if (graph.tensor(expand.inputs[0]).shape[3] != weights.shape[3]) return {};

  ir::Node node = pair;
  node.inputs.resize(std::max(node.inputs.size(), uz(kExpandBias) + 1), -1);
  node.inputs[kImage] = expand.inputs[0];
  node.inputs[kExpandWeights] = expand.inputs[1];
  if (expand.inputs.size() > 2) node.inputs[kExpandBias] = expand.inputs[2];
  node.outputs.push_back(expand.outputs[0]);
  node.op = expand.op;
  node.tflite_index = expand.tflite_index;
  SeparableAttrs attrs = static_cast<const SeparableAttrs&>(*pair.attrs);
  attrs.expand = expand;
  node.attrs = share(std::move(attrs));
  return node;
}

bool inverted_pays(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device) {
  return may_be_half(graph, node, device);
}

bool separable_pays(const ir::Graph& graph, const ir::Node& node, bool halves,
                    const DeviceInfo& device) {
  if (device.is_mobile()) return false;
  if (graph.tensor(node.outputs[kResult]).is_quantized())
    return int8_refusal(NodeContext(graph, node), device).empty();
  return (halves && may_be_half(graph, node, device)) || fused_float_pays(graph, node, device);
}

const Family kSeparableConv2dFamily = [] {
  Family family;
  family.name = "separable_conv2d";
  family.attrs = ir::attrs_type<SeparableAttrs>();
  family.has_epilogue = true;
  family.residual = kResidual;
  family.slopes = kSlopes;
  family.writes_slices = true;
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.rows = &kRows;
  family.flops = flops;
  family.work_kind = WorkKind::kProduct;
  family.fuses = {&kDepthwiseConv2dFamily, &kConv2dFamily};
  return family;
}();

}  // namespace clgpu::ops
