// Engine `fused_int8` of the separable family: a depthwise convolution and the 1x1 convolution
// after it in one launch on NVIDIA's tensor cores. See kernels/separable_conv2d/fused_s8_nvidia.cl.
#include <algorithm>
#include <cmath>

#include "ops/families/separable_conv2d.hpp"
#include "ops/products/conv_geometry.hpp"
#include "ops/shared/parts.hpp"

namespace clgpu::ops::separable_conv2d {
namespace {

/// Macros of the kernel; see its head.
struct Tile {
  int tm, warps, nb;
  int items() const { return warps * 32; }
  int channels() const { return warps * nb * 8; }
};
constexpr Tile kTiles[] = {{16, 4, 2}, {16, 4, 4}, {16, 8, 4}, {32, 4, 2}, {32, 4, 4},
                           {32, 8, 4}, {32, 8, 8}, {64, 4, 2}, {64, 4, 4}, {64, 8, 4}};
constexpr std::int64_t kLocalBytes = 48 * 1024;  // of a work-group
constexpr std::size_t kMostCandidates = 5;
constexpr int kStep = 32;  // channels that one product of tensor cores adds up

struct Sizes {
  explicit Sizes(const NodeContext& node)
      : src(node.input(kImage).shape),
        filter(node.input(kFilter).shape),
        dst(node.output(kResult).shape),
        pixels(dst.elements(0, 3)),
        steps(ceil_div(src[3], kStep)) {}
  ir::Shape src, filter, dst;
  std::int64_t pixels, steps;
  std::int64_t tiles(const Tile& tile) const { return ceil_div(pixels, tile.tm); }
  std::int64_t panels(const Tile& tile) const { return ceil_div(dst[3], tile.channels()); }
  std::int64_t mid_bytes(const Tile& tile) const { return tile.tm * (steps * kStep + 16); }
};

/// The weights of each filter row and channel in one word, the first column in the lowest byte.
std::vector<std::uint32_t> filter_words(const ir::Tensor& filter) {
  const int height = filter.shape[1], width = filter.shape[2], channels = filter.shape[3];
  const auto* weights = static_cast<const std::uint8_t*>(filter.constant->data);
  std::vector<std::uint32_t> words(uz(height) * uz(channels), 0);
  for (int u = 0; u < height; ++u) {
    for (int v = 0; v < width; ++v) {
      for (int c = 0; c < channels; ++c) {
        words[uz(u * channels + c)] |=
            static_cast<std::uint32_t>(weights[(u * width + v) * channels + c]) << (8 * v);
      }
    }
  }
  return words;
}

/// Estimate of the clock cycles of the node. It ranks tiles.
double cycles(const Sizes& size, const Tile& tile, const DeviceInfo& device) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double filtered = 0.9 * real(tile.tm) * real(size.src[3]) / 4;
  const double products = 2.0 * real(size.steps) * (tile.tm / 16.0) * tile.nb * tile.warps;
  const double results = 0.2 * tile.tm * std::min(tile.channels(), size.dst[3]);
  const double busy = filtered + products + results;
  const double groups = real(size.tiles(tile) * size.panels(tile));
  const double resident =
      std::max(1.0, std::min(2048.0 / tile.items() / 2, 227.0 * 1024 / real(size.mid_bytes(tile))));
  // A single work-group has too few warps to keep its compute unit busy.
  const double alone = 1500 + busy * 8 / tile.warps;
  constexpr double kGroup = 800;  // for every work-group
  return std::max(groups / device.compute_units * (busy + kGroup),
                  std::ceil(groups / (device.compute_units * resident)) * alone);
}

kernel::Candidate make(const NodeContext& node, const Sizes& size, const Tile& tile) {
  const ir::Graph& graph = node.graph();
  const Parts parts = parts_of(node);
  const NodeContext depthwise(graph, parts.depthwise), pointwise(graph, parts.pointwise);
  const auto& geometry = depthwise.attrs<ConvAttrs>().geometry;
  const ConvWindows at =
      windows(geometry, size.src[1], size.src[2], size.filter[1], size.filter[2]);
  const std::int64_t in_c = size.src[3], out_c = size.dst[3];

  std::vector<kernel::Scratch> scratch = {kernel::table(filter_words(node.input(kFilter)))};
  ChannelTable depth = channel_table(depthwise, {0, 1, 2, 3},
                                     {in_c, size.filter.elements(1, 3), 1, in_c}, /*first=*/1);
  ChannelTable point = channel_table(pointwise, {0, 1, 2, 0}, {out_c, in_c, in_c, 1}, /*first=*/3);
  scratch.insert(scratch.end(), {depth.scales, depth.result, point.scales, point.result});

  const std::int64_t panels = size.panels(tile);
  const std::int64_t packed = panels * size.steps * kStep * tile.channels();
  kernel::Launch pack("tensor_gemm/pack_nvidia.cl", "tensor_gemm_pack");
  pack.macro("TN", tile.channels()).macro("TK", kStep).macro("BLOCKS", tile.nb == 2 ? 2 : 4);
  pack.macro("NEIGHBOURS", 0).macro("TRANSPOSED", 0);
  pack.type("SRC_T", DType::kI8).type("DST_T", DType::kI8);
  pack.src(kWeights).scratch_out(static_cast<int>(scratch.size())).i32(packed);
  pack.i32(in_c).i32(out_c).i32(panels).i32(size.steps);
  pack.range({uz(packed / 16)}, {kElementwiseGroup});  // an item writes 16 bytes

  const ir::Tensor& between = node.output(kBetween);
  const IntRange range = activation_range(parts.depthwise.epilogue.activation, between);
  kernel::Launch launch("separable_conv2d/fused_s8_nvidia.cl", "separable_conv2d_fused_s8");
  set_result_types(launch, pointwise, -1);
  launch.macro("MMA_TYPE", 2).macro("TM", tile.tm).macro("WARPS", tile.warps).macro("NB", tile.nb);
  launch.macro("FILTER_H", size.filter[1]).macro("FILTER_W", size.filter[2]);
  launch.src(kImage).scratch_in(0).scratch_in(depth.index).i32(depth.pitch);
  launch.i32(between.zero_point()).i32(range.low).i32(range.high);
  launch.scratch_in(static_cast<int>(scratch.size()));
  push_channels(launch, pointwise, point);
  push_result(launch, result_layout(node));
  launch.local_memory(uz(size.mid_bytes(tile)));
  int width = 8;
  while (width < tile.items() && width * 4 < in_c) width *= 2;
  launch.i32(size.pixels).i32(panels).i32(width);
  for (const ir::Shape* shape : {&size.src, &size.dst}) {
    for (int axis = 1; axis < 4; ++axis) launch.i32((*shape)[axis]);
  }
  launch.i32(geometry.stride_h).i32(geometry.stride_w).i32(at.h.before).i32(at.w.before);
  launch.i32(fill_of(node.input(kImage)));
  launch.range({uz(size.tiles(tile) * panels * tile.items())}, {uz(tile.items())});
  scratch.push_back({packed});

  const std::string name =
      "fused_int8_" + std::to_string(tile.tm) + "x" + std::to_string(tile.channels());
  return {name,
          {translated(depth.launch, parts.depthwise, node.node(), 0),
           translated(point.launch, parts.pointwise, node.node(), 0), pack, launch},
          std::move(scratch)};
}

}  // namespace

std::string int8_refusal(const NodeContext& node, const DeviceInfo& device) {
  if (!device.mma_s8) return "the device has no products of int8 matrices";
  const ir::Shape& filter = node.input(kFilter).shape;
  const auto& attrs = node.attrs<SeparableAttrs>();
  if (static_cast<const ConvAttrs&>(*attrs.depthwise.attrs).geometry.reflect)
    return "an image of integers is not mirrored";
  if (filter[1] > 5 || filter[2] > 4) return "a row of the filter does not fit a word";
  if (node.input(kWeights).shape[0] % 8 != 0 || !result_layout(node).aligned(8))
    return "the output channels are not a multiple of 8";
  return {};
}

std::vector<kernel::Candidate> fused_int8(const NodeContext& node, const DeviceInfo& device) {
  if (const std::string why = int8_refusal(node, device); !why.empty())
    return {{"fused_int8", {}, {}, why}};
  const Sizes size(node);
  std::vector<std::pair<double, const Tile*>> ranked;
  for (const Tile& tile : kTiles) {
    const bool fits = size.mid_bytes(tile) + 16 * tile.tm <= kLocalBytes;
    // Half of the panel may be empty.
    if (!fits || tile.channels() >= 2 * round_up(size.dst[3], 64)) continue;
    ranked.emplace_back(cycles(size, tile, device), &tile);
  }
  if (ranked.empty())
    return {
        {"fused_int8", {}, {}, std::to_string(size.src[3]) + " channels do not fit local memory"}};
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > kMostCandidates) ranked.resize(kMostCandidates);
  std::vector<kernel::Candidate> result;
  for (const auto& [cost, tile] : ranked) result.push_back(make(node, size, *tile));
  return result;
}

}  // namespace clgpu::ops::separable_conv2d
