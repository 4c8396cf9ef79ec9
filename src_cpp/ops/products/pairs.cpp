#include "ops/products/pairs.hpp"

#include <algorithm>

#include "ops/products/conv_geometry.hpp"

namespace clgpu::ops {
namespace {

/// Elements of the depth that a tile keeps in local memory: all of it for most layers, and one
/// number for all layers, so that there are few programs. A row takes 32 more.
int run(const DeviceInfo& device, int tile) {
  constexpr int kMost = 72 * 64, kStep = 64, kBeyond = 32;
  const auto fits = static_cast<int>(device.local_bytes / 2 / sizeof(std::int16_t)) / tile;
  return std::max(kStep, std::min(kMost, (fits - kBeyond) / kStep * kStep));
}

/// The work of a work-item: `panels` panels for each of `tiles` tiles.
struct Share {
  std::int64_t panels, tiles;
};

/// Enough work to justify starting it and copying pixels, enough items for the cores.
Share share(const PairProducts& products, const PairTile& tile, int cores) {
  constexpr std::int64_t kWork = 1 << 21;  // multiply-adds
  const std::int64_t panels = ceil_div(products.channels, tile.panel());
  const std::int64_t tiles = ceil_div(products.pixels, tile.pixels);
  const std::int64_t least = 4 * cores;
  Share result{panels, 1};
  while (result.panels > 1 && tiles * ceil_div(panels, result.panels) * products.groups < least)
    result.panels = ceil_div(result.panels, 2);
  const std::int64_t work = result.panels * tile.panel() * tile.pixels * products.depth;
  const std::int64_t items = tiles * ceil_div(panels, result.panels) * products.groups;
  result.tiles = std::max<std::int64_t>(1, std::min(kWork / work, items / least));
  return result;
}

// Weights minus their zero point have nine bits.
DType packed_type(const ir::Tensor& weights) {
  return weights.dtype == DType::kI8 && weights.zero_point() == 0 ? DType::kI8 : DType::kI16;
}

}  // namespace

std::vector<PairTile> pair_tiles(const PairProducts& products, const DeviceInfo& device) {
  const bool wide = has_512_bit_registers(device) && device.vector_elements >= 2 * 16;
  const int fitting = cpu_vector(static_cast<int>(products.channels));
  const int width = wide ? fitting : std::min(8, fitting);
  const int vectors = products.channels > width ? 2 : 1;
  // As many sums as 32 registers hold, 16 if they are narrow, and few pixels beyond the last one: a
  // tile costs its pixels, and two more for its weights.
  std::vector<int> tiles = wide ? std::vector<int>{14, 12, 10, 7, 4, 1} : std::vector<int>{6, 4, 1};
  const auto cost = [&](int tile) { return ceil_div(products.pixels, tile) * (tile + 2); };
  std::stable_sort(tiles.begin(), tiles.end(), [&](int a, int b) { return cost(a) < cost(b); });
  return {{width, vectors, tiles[0]}, {width, vectors, tiles[1]}};
}

kernel::Launch pack_pairs(const NodeContext& node, const PairProducts& products,
                          const PairTile& tile, kernel::Scratch& scratch) {
  const ir::Tensor& weights = node.input(products.weights);
  const std::int64_t panels = ceil_div(products.channels, tile.panel());
  const std::int64_t pairs = ceil_div(products.depth, 2);
  const DType packed = packed_type(weights);
  kernel::Launch pack("conv2d/pack_pairs.cl", "conv2d_pack_pairs");
  pack.macro("PANEL", tile.panel()).type("SRC_T", weights.storage).type("DST_T", packed);
  pack.src(products.weights).scratch_out(0);
  pack.i32(products.depth).i32(products.channels).i32(panels).i32(weights.zero_point());
  pack.range({uz(pairs), uz(products.groups * panels)}, {kElementwiseGroup, 1});
  scratch.bytes = products.groups * panels * pairs * 2 * tile.panel() *
                  static_cast<std::int64_t>(size_of(packed));
  return pack;
}

void push_pairs(kernel::Launch& launch, const NodeContext& node, const DeviceInfo& device,
                const PairProducts& products, const PairTile& tile, const ChannelTable& channels) {
  const std::int64_t panels = ceil_div(products.channels, tile.panel());
  const Share item = share(products, tile, device.compute_units);
  launch.type("PACKED_T", packed_type(node.input(products.weights)));
  // A start that is clamped to 2^29 plus a sum within 2^28 still ends at the bound that it
  // exceeded.
  const std::int64_t factor = node.input(products.src).dtype == DType::kI8 ? 128 : 255;
  const bool quick = channels.quick && products.depth * factor * 255 < (1 << 28);
  launch.macro("QUICK", quick ? 1 : 0);
  launch.macro("VW", tile.width).macro("OV", tile.vectors).macro("PX", tile.pixels);
  launch.macro("RUN", run(device, tile.pixels)).src(products.src).scratch_in(0);
  push_result(push_channels(launch, node, channels), result_layout(node));
  launch.i32(products.pixels).i32(item.tiles).i32(item.panels).i32(panels);
  launch.i32(products.depth).i32(products.channels);
  launch.range({uz(ceil_div(panels, item.panels)),
                uz(ceil_div(products.pixels, item.tiles * tile.pixels)), uz(products.groups)},
               {1, 1, 1});
}

}  // namespace clgpu::ops
