// Engine `pairs`: 8-bit integers on CPUs, widened to pairs of 16 bits, which x86 multiplies and
// adds at twice the rate of floats.
#include <algorithm>

#include "ops/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {
namespace {

/// Elements of the depth that a tile has in local memory: all of it for most layers, and one number
/// for all layers, which keeps programs few. A row takes 32 more.
int run(const DeviceInfo& device, int tile) {
  constexpr int kMost = 72 * 64, kStep = 64, kBeyond = 32;
  const auto fits = static_cast<int>(device.local_bytes / 2 / sizeof(std::int16_t)) / tile;
  return std::max(kStep, std::min(kMost, (fits - kBeyond) / kStep * kStep));
}

/// What a work-item computes: `panels` panels for each of `tiles` tiles.
struct Share {
  std::int64_t panels, tiles;
};

/// Enough work to pay for starting it and for copying pixels, enough items for the cores.
Share share(const Convolution& conv, int channels, int tile) {
  constexpr std::int64_t kWork = 1 << 21;  // multiply-adds
  const std::int64_t panels = ceil_div(conv.group_out, channels);
  const std::int64_t tiles = ceil_div(conv.pixels, tile);
  const std::int64_t least = 4 * conv.device.compute_units;
  Share result{panels, 1};
  while (result.panels > 1 && tiles * ceil_div(panels, result.panels) * conv.groups < least)
    result.panels = ceil_div(result.panels, 2);
  const std::int64_t work = result.panels * channels * tile * conv.depth;
  const std::int64_t items = tiles * ceil_div(panels, result.panels) * conv.groups;
  result.tiles = std::max<std::int64_t>(1, std::min(kWork / work, items / least));
  return result;
}

kernel::Candidate candidate(const Convolution& conv, int width, int vectors, int tile) {
  const ir::Tensor& weights = conv.node.input(kWeights);
  const int panel = width * vectors;
  const std::int64_t panels = ceil_div(conv.group_out, panel),
                     depth_pairs = ceil_div(conv.depth, 2);
  // Unsigned weights less their zero point have nine bits.
  const DType packed = weights.dtype == DType::kI8 ? DType::kI8 : DType::kI16;
  kernel::Launch pack("conv2d/pack_pairs.cl", "conv2d_pack_pairs");
  pack.macro("PANEL", panel).type("SRC_T", weights.storage).type("DST_T", packed);
  pack.src(kWeights).scratch_out(0).i32(conv.depth).i32(conv.group_out).i32(panels);
  pack.i32(weights.zero_point());
  pack.range({uz(depth_pairs), uz(conv.groups * panels)}, {kElementwiseGroup, 1});
  const kernel::Scratch scratch{conv.groups * panels * depth_pairs * 2 * panel *
                                static_cast<std::int64_t>(size_of(packed))};

  const ChannelTable channels = conv.channels(1);
  const Share item = share(conv, panel, tile);
  kernel::Launch launch("conv2d/pairs.cl", "conv2d_pairs");
  conv.set_types(launch);
  launch.type("PACKED_T", packed).macro("VW", width).macro("OV", vectors).macro("PX", tile);
  const bool pointwise = conv.is_pointwise() && conv.in_h == conv.out_h;
  launch.macro("POINTWISE", pointwise ? 1 : 0);
  launch.macro("RUN", run(conv.device, tile)).src(kImage).scratch_in(0);
  ops::push_result(push_channels(launch, conv.node, channels), result_layout(conv.node));
  launch.i32(conv.pixels).i32(item.tiles).i32(item.panels).i32(panels);
  launch.i32(conv.group_in).i32(conv.group_out);
  conv.push_geometry(launch);
  launch.i32(conv.node.input(kImage).zero_point());
  launch.range({uz(ceil_div(panels, item.panels)), uz(ceil_div(conv.pixels, item.tiles * tile)),
                uz(conv.groups)},
               {1, 1, 1});
  return {"pairs_" + std::to_string(tile),
          {pack, channels.launch, launch},
          {scratch, channels.scales, channels.result}};
}

}  // namespace

std::vector<kernel::Candidate> pairs(const Convolution& conv, bool wide_registers) {
  if (conv.image_storage() == DType::kI16) return {};
  const int width =
      wide_registers ? cpu_vector(conv.group_out) : std::min(8, cpu_vector(conv.group_out));
  const int vectors = conv.group_out > width ? 2 : 1;
  // As many sums as 32 registers hold, 16 where they are narrow, and few pixels beyond the last
  // one: a tile costs its pixels, and two more for its weights.
  std::vector<int> tiles =
      wide_registers ? std::vector<int>{14, 12, 10, 7} : std::vector<int>{6, 4};
  const auto cost = [&](int tile) { return ceil_div(conv.pixels, tile) * (tile + 2); };
  std::stable_sort(tiles.begin(), tiles.end(), [&](int a, int b) { return cost(a) < cost(b); });
  return {candidate(conv, width, vectors, tiles[0]), candidate(conv, width, vectors, tiles[1])};
}

}  // namespace clgpu::ops::conv2d
