// Engine `fused_half` of the separable family: a depthwise convolution of halves and the 1x1
// convolution after it in one launch on NVIDIA's tensor cores. See
// kernels/separable_conv2d/fused_f16_nvidia.cl.
#include <algorithm>
#include <cmath>

#include "ops/families/separable_conv2d.hpp"
#include "ops/products/conv_geometry.hpp"
#include "ops/products/tensor_gemm.hpp"

namespace clgpu::ops::separable_conv2d {
namespace {

/// Macros of the kernel; see its head.
struct Tile {
  int mb, tn, warps_m, warps_k;
  int items() const { return warps_m * warps_k * 32; }
  int units() const { return warps_m * 8; }
  int pixels() const { return 2 * mb; }  ///< of a unit
};
constexpr Tile kTiles[] = {{1, 16, 8, 1}, {1, 16, 4, 2}, {1, 16, 2, 4}, {1, 16, 1, 8},
                           {1, 32, 8, 1}, {1, 32, 4, 2}, {1, 32, 2, 4}, {1, 32, 1, 8},
                           {1, 64, 8, 1}, {1, 64, 4, 2}, {1, 64, 2, 4}, {1, 64, 1, 8},
                           {2, 32, 8, 1}, {2, 32, 4, 2}, {2, 32, 2, 4}, {2, 32, 1, 8},
                           {2, 64, 4, 1}, {2, 64, 2, 2}, {2, 64, 1, 4}};
constexpr std::size_t kMostCandidates = 5;
constexpr int kStep = 32;  // channels of a block

struct Sizes {
  Sizes(const ir::Graph& graph, const ir::Node& node)
      : geometry(static_cast<const ConvAttrs&>(
                     *static_cast<const SeparableAttrs&>(*node.attrs).depthwise.attrs)
                     .geometry),
        src(graph.tensor(node.inputs[kImage]).shape),
        filter(graph.tensor(node.inputs[kFilter]).shape) {
    const ConvWindows at = windows(geometry, src[1], src[2], filter[1], filter[2]);
    dst = {src[0], at.h.out, at.w.out, graph.tensor(node.inputs[kWeights]).shape[0]};
    blocks = ceil_div(filter[3], kStep);
    expands = static_cast<const SeparableAttrs&>(*node.attrs).expand.has_value();
    taps = filter[1] * filter[2];
    top = at.h.before, left = at.w.before;
  }
  const ConvGeometry& geometry;
  ir::Shape src, filter, dst;
  bool expands = false;
  std::int64_t blocks = 0;  ///< of 32 channels between the convolutions
  int taps = 0, top = 0, left = 0;
  std::int64_t units_x(const Tile& tile) const { return ceil_div(dst[2], tile.pixels()); }
  std::int64_t units(const Tile& tile) const { return dst.elements(0, 2) * units_x(tile); }
  std::int64_t panels(const Tile& tile) const { return ceil_div(dst[3], tile.tn); }
  std::int64_t groups(const Tile& tile) const {
    return ceil_div(units(tile), tile.units()) * panels(tile);
  }
  /// Pixels under the filter of a unit along the width, and all.
  int columns(const Tile& tile) const {
    return (tile.pixels() - 1) * geometry.stride_w + filter[2];
  }
  int loads(const Tile& tile) const { return filter[1] * columns(tile); }
  /// The blocks of 32 channels that a warp computes.
  std::int64_t steps(const Tile& tile) const { return ceil_div(blocks, tile.warps_k); }
};

std::string engine_of(const Sizes& size) { return size.expands ? kInvertedEngine : "fused_half"; }

/// The macro READS of the kernel.
int reads_of(const Sizes& size, const Tile& tile, const DeviceInfo& device) {
  // Registers are of use only while there are enough for all work-groups at the same time: 255 for
  // each of 256 work-items of a compute unit.
  const bool fits = size.groups(tile) * tile.items() <= std::int64_t{256} * device.compute_units;
  // Loads of a block that leave registers for weights and sums, without spills by NVIDIA's
  // compiler.
  constexpr int kMost = 30;
  return fits && (size.expands || size.loads(tile) <= kMost) ? 1 : 0;
}

/// Of a work-group: PITCH of the kernel for each warp.
std::int64_t local_bytes(const Sizes& size, const Tile& tile, int reads) {
  const std::int64_t sums = std::int64_t{32} * tile.pixels() * tile.tn;
  const std::int64_t depthwise = std::int64_t{128} * (ceil_div(size.taps, 2) + 1);
  const std::int64_t weights = reads == 0 ? 0 : std::int64_t{64} * tile.tn + depthwise;
  return std::max(sums, weights) * tile.warps_m * tile.warps_k;
}

constexpr double kLaunch = 3.1;  // microseconds, as tensor_gemm has them

/// Estimate of the microseconds of the launch: the longer of latency and throughput, with
/// coefficients fitted to 690 launches of the layers of MobileNets on an H200, and to their stages
/// of chains. A compute unit takes as many work-groups at once as in a chain: only networks of one
/// image have such nodes.
double microseconds(const Sizes& size, const Tile& tile, const DeviceInfo& device) {
  const int reads = reads_of(size, tile, device);
  const double loads = size.loads(tile);  // 16 bytes each, of a lane for 32 channels
  const double area = tile.mb * tile.tn, warps = tile.warps_m * tile.warps_k;
  const double steps = static_cast<double>(size.steps(tile));
  const double at_once = std::max(
      1.0, std::min(std::floor(256.0 / tile.items()),
                    std::floor(48.0 * 1024 / static_cast<double>(local_bytes(size, tile, reads)))));
  const double share = static_cast<double>(size.groups(tile)) / device.compute_units;
  const double rounds = std::ceil(share / at_once);
  // With a product before: blocks of 16 pixels for which a lane computes it.
  const double columns = size.columns(tile);
  const double wide =
      size.expands ? size.filter[1] * std::ceil(columns / 2) * std::ceil(size.src[3] / 32.0) : 0;
  const double latency =
      rounds * (1.54 + steps * (0.5 + 0.0021 * tile.tn + 0.022 * loads + 0.35 * wide));
  const double throughput = share * (0.0085 * warps * steps * (loads + 4 * wide) +
                                     area * (0.003 * tile.warps_m + 0.00088 * warps));
  return kLaunch + std::max(latency, throughput) + 0.15 * std::min(latency, throughput);
}

bool suits(const Sizes& size, const Tile& tile, const DeviceInfo& device) {
  // More pixels under wide filters than registers.
  if (size.filter[2] > 3 && tile.mb > 1) return false;
  // No warp is idle, nor half of a panel empty.
  if (tile.warps_k > size.blocks || tile.tn >= 2 * round_up(size.dst[3], 32)) return false;
  return local_bytes(size, tile, reads_of(size, tile, device)) <= 48 * 1024;
}

std::vector<std::pair<double, const Tile*>> ranked(const Sizes& size, const DeviceInfo& device) {
  std::vector<std::pair<double, const Tile*>> result;
  for (const Tile& tile : kTiles) {
    if (suits(size, tile, device)) result.emplace_back(microseconds(size, tile, device), &tile);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return result;
}

kernel::Candidate make(const NodeContext& node, const Sizes& size, const Tile& tile, int reads) {
  const auto& attrs = node.attrs<SeparableAttrs>();
  const std::int64_t in_c = size.src[3], mid_c = size.filter[3], out_c = size.dst[3];
  const std::int64_t panels = size.panels(tile), units = size.units(tile);
  const bool has_bias = node.has_input(kFilterBias);

  const bool expands = size.expands, has_expand_bias = expands && node.has_input(kExpandBias);
  const auto type_of = [&](bool exists, int input) {
    return exists ? node.input(input).storage : DType::kF32;
  };
  const std::int64_t words = size.blocks * kStep * ((size.taps + 1) / 2 + 1 + (expands ? 1 : 0));
  kernel::Launch depth("separable_conv2d/pack_depth_nvidia.cl", "separable_conv2d_pack_depth");
  depth.macro("TAPS", size.taps).macro("DEPTH_BIAS", has_bias ? 1 : 0);
  depth.macro("EXPAND", expands ? 1 : 0).macro("EXPAND_BIAS", has_expand_bias ? 1 : 0);
  depth.type("SRC_T", node.input(kFilter).storage);
  depth.type("DEPTH_BIAS_T", type_of(has_bias, kFilterBias));
  depth.type("EXPAND_BIAS_T", type_of(has_expand_bias, kExpandBias));
  depth.src(kFilter);
  if (has_bias) depth.src(kFilterBias);
  if (has_expand_bias) depth.src(kExpandBias);
  depth.scratch_out(0).i32(words).i32(mid_c).range({uz(words)}, {kElementwiseGroup});

  std::vector<kernel::Scratch> scratch = {{words * 4}};
  std::vector<kernel::Launch> launches = {depth};
  const auto pack = [&](int weights, int tn, int interleaved, std::int64_t depth_c,
                        std::int64_t channels) {
    const std::int64_t steps = ceil_div(depth_c, kStep);
    const std::int64_t packed = ceil_div(channels, tn) * steps * kStep * tn;
    kernel::Launch point("separable_conv2d/pack_point_nvidia.cl", "separable_conv2d_pack_point");
    point.macro("TN", tn).macro("BLOCKS", interleaved);
    point.type("SRC_T", node.input(weights).storage);
    point.src(weights).scratch_out(static_cast<int>(scratch.size())).i32(packed).i32(depth_c);
    point.i32(channels).i32(steps).range({uz(packed)}, {kElementwiseGroup});
    launches.push_back(std::move(point));
    scratch.push_back({packed * 2});
  };
  pack(kWeights, tile.tn, 2, mid_c, out_c);
  if (expands) pack(kExpandWeights, kStep, 4, in_c, mid_c);

  kernel::Launch launch("separable_conv2d/fused_f16_nvidia.cl", "separable_conv2d_fused_f16");
  set_result_types(launch, node, kBias);
  launch.macro("MMA_TYPE", 0).macro("MB", tile.mb).macro("TN", tile.tn);
  launch.macro("WARPS_M", tile.warps_m).macro("WARPS_K", tile.warps_k);
  launch.macro("FILTER_H", size.filter[1]).macro("FILTER_W", size.filter[2]);
  launch.macro("STRIDE_H", size.geometry.stride_h).macro("STRIDE_W", size.geometry.stride_w);
  launch.macro("READS", reads).macro("EXPAND", expands ? 1 : 0);
  launch.macro("EXPAND_ACT", expands ? static_cast<int>(attrs.expand->epilogue.activation) : 0);
  launch.macro("EXPAND_STEPS", expands ? ceil_div(in_c, kStep) : 1);
  launch.macro("DEPTH_ACT", static_cast<int>(attrs.depthwise.epilogue.activation));
  launch.macro("WIDE", out_c % 4 == 0 && result_layout(node).aligned(4) ? 1 : 0);
  launch.src(kImage);
  if (expands) launch.scratch_in(2);
  launch.scratch_in(0).scratch_in(1);
  push_result(launch, node, kBias);
  if (reads > 0) {
    using Kind = kernel::Operand::Kind;
    for (kernel::Arg& arg : launch.args) {
      auto* const operand = std::get_if<kernel::Operand>(&arg);
      if (operand == nullptr) continue;
      const int i = operand->index;
      operand->early = (operand->kind == Kind::kScratch && i < 2) ||
                       (operand->kind == Kind::kInput && (i == kBias || i == node.slopes()));
    }
  }
  launch.i32(units).i32(size.units_x(tile)).i32(panels).i32(size.blocks);
  for (const ir::Shape* shape : {&size.src, &size.dst}) {
    for (int axis = 1; axis < 4; ++axis) launch.i32((*shape)[axis]);
  }
  launch.i32(size.top).i32(size.left);
  launch.range({uz(size.groups(tile) * tile.items())}, {uz(tile.items())});

  launches.push_back(std::move(launch));
  const std::string name = engine_of(size) + "_" + std::to_string(tile.units() * tile.pixels()) +
                           "x" + std::to_string(tile.tn) + "_split" + std::to_string(tile.warps_k);
  kernel::Candidate result{name, std::move(launches), std::move(scratch)};
  result.tensor_cores = true;
  return result;
}

/// What is known before tensors have their storage.
std::string problem(const Sizes& size) {
  if (size.geometry.reflect) return "an image of halves is not mirrored";
  if (size.src[3] % 8 != 0) return "the channels are not a multiple of 8";
  return {};
}

}  // namespace

bool may_be_half(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device) {
  // Networks have been seen to be faster at batch 1 only.
  return graph.allows_half && device.mma_f16 && graph.tensor(node.inputs[kImage]).shape[0] == 1 &&
         problem(Sizes(graph, node)).empty();
}

double apart_microseconds(const NodeContext& node, const DeviceInfo& device) {
  const Parts parts = parts_of(node);
  const auto cost = [&](const ir::Node& part) {
    const auto found = family_of(part).candidates(NodeContext(node.graph(), part), device);
    // An engine without an estimate is taken for few products.
    return std::max(kLaunch, found.empty() ? 0 : found.front().microseconds);
  };
  if (parts.expand) {
    const NodeContext pair(node.graph(), parts.pair);
    const auto half = fused_half(pair, device);
    const bool fused = !half.empty() && half.front().refusal.empty();
    const double two = apart_microseconds(pair, device);
    return cost(*parts.expand) + (fused ? std::min(two, half.front().microseconds) : two);
  }
  constexpr double kLatency = 1.5, kBytesPerMicrosecond = 3.0e6;
  const double bytes = 2.0 * static_cast<double>(node.input(kImage).shape.elements() +
                                                 node.output(kBetween).shape.elements());
  const double depth = kLaunch + std::max(kLatency, bytes / kBytesPerMicrosecond);
  return depth + cost(parts.pointwise);
}

std::vector<kernel::Candidate> fused_half(const NodeContext& node, const DeviceInfo& device) {
  if (!device.mma_f16 || node.input(kImage).storage != DType::kF16) return {};
  const Sizes size(node.graph(), node.node());
  const auto takes = [&](int input) {
    const ir::Tensor& tensor = node.input(input);
    return tensor.storage == DType::kF16 ||
           (tensor.storage == DType::kF32 && tensor.constant->fits_half());
  };
  std::string why = problem(size);
  if (why.empty()) why = bfloat_problem(node, -1);
  const bool fit = takes(kFilter) && takes(kWeights) && (!size.expands || takes(kExpandWeights));
  if (why.empty() && !fit)
    why = "weights in float may not fit the half that the image is stored as";
  const auto rounded = [&](int output) { return node.output(output).storage == DType::kF16; };
  if (why.empty() && !node.allows_half() &&
      !(rounded(kBetween) && (!size.expands || rounded(kExpanded))))
    why = "the precision does not let the result between the convolutions be rounded to half";
  if (!why.empty()) return {{engine_of(size), {}, {}, why}};
  auto found = ranked(size, device);
  if (found.size() > kMostCandidates) found.resize(kMostCandidates);
  std::vector<kernel::Candidate> result;
  for (const auto& [cost, tile] : found) {
    result.push_back(make(node, size, *tile, reads_of(size, *tile, device)));
    result.back().microseconds = cost;
  }
  return result;
}

}  // namespace clgpu::ops::separable_conv2d
