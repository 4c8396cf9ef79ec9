// Tiles of products of matrices, and their choice.
#include "ops/products/matmul.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/dot8.hpp"

namespace clgpu::ops {
namespace {

// Large tiles read the matrices less often; small ones and slices keep more compute units busy.
constexpr GemmTile kTiles[] = {
    {128, 128, 16, 8, 8, 1}, {128, 64, 16, 8, 8, 1}, {128, 32, 16, 8, 8, 1}, {64, 64, 16, 8, 8, 1},
    {64, 64, 16, 8, 4, 2},   {64, 32, 16, 8, 4, 1},  {32, 32, 16, 4, 4, 1},  {32, 32, 32, 4, 4, 4},
    {16, 32, 32, 4, 4, 4},   {16, 16, 64, 4, 4, 8},  {256, 16, 8, 8, 8, 1},  {256, 4, 16, 4, 4, 1}};

/// Estimate of the cycles of a launch on a device like NVIDIA's, with 128 lanes per compute unit.
/// Fitted to the layers of networks and of PyNET on an H200; only comparisons are meaningful.
double cycles(const GemmTile& tile, const Products& products, const DeviceInfo& device) {
  constexpr double kLanes = 128, kLatency = 150;
  constexpr double kRead = 1.9;  // cost of reading a row or column of sums, in multiply-adds
  constexpr double kStage = 8;   // ... of copying four elements to local memory
  constexpr double kWarps = 8;   // of 32 items, which hide the latencies of arithmetic
  const double area = tile.rm * tile.rn;
  const double multiply = (area + kRead * (tile.rm + tile.rn)) / area * tile.tm * tile.tn * tile.tk;
  const double work = (multiply + kStage * (tile.tm + tile.tn) * tile.tk / 4) / kLanes;
  const auto steps = static_cast<double>(ceil_div(products.depth, tile.tk));
  const std::int64_t groups =
      ceil_div(products.rows, tile.tm) * ceil_div(products.cols, tile.tn) * products.count;
  const auto in_turn = static_cast<double>(ceil_div(groups, device.compute_units));
  const double warps = in_turn * tile.items() / 32;
  const double alone = kLatency + work / std::min(1.0, tile.items() / kLanes);
  return steps * std::max(alone, in_turn * work / std::min(1.0, std::sqrt(warps / kWarps)));
}

/// ... of the launch that adds the sums of splits.
double cycles_of_sum(std::int64_t splits, const Products& products, const DeviceInfo& device) {
  constexpr double kLaunch = 5000, kBytesPerCycle = 16;
  const auto elements = static_cast<double>(products.rows * products.cols * products.count);
  return kLaunch + static_cast<double>(splits) * elements * 2 * sizeof(float) /
                       (kBytesPerCycle * device.compute_units);
}

}  // namespace

std::size_t GemmTile::local_bytes() const {
  const std::int64_t stages = std::int64_t{tk} * (tm + tn + 8);
  const std::int64_t sums = std::int64_t{slices - 1} * tm * tn;
  return uz(std::max(stages, sums)) * sizeof(float);
}

std::string GemmTile::name() const {
  const std::string size = std::to_string(tm) + "x" + std::to_string(tn);
  return slices == 1 ? size : size + "_slices" + std::to_string(slices);
}

bool GemmTile::fits(const DeviceInfo& device) const {
  return uz(items()) <= device.max_work_group_size &&
         uz(items()) <= device.max_work_item_sizes[0] && local_bytes() <= device.local_bytes;
}

std::vector<GemmChoice> choose_tiles(const Products& products, const DeviceInfo& device,
                                     std::size_t count, std::int64_t most_splits) {
  std::vector<std::pair<double, GemmChoice>> choices;
  for (const GemmTile& tile : kTiles) {
    if (!tile.fits(device)) continue;
    // CPUs have other engines, and their compilers take seconds for items with many sums.
    if (device.is_cpu() && tile.rm * tile.rn > 32) continue;
    std::pair<double, GemmChoice> best{cycles(tile, products, device), {tile, 1}};
    for (std::int64_t splits = 2; splits <= most_splits; splits *= 2) {
      if (products.depth < 4 * splits * tile.tk) break;
      Products part = products;
      part.depth = ceil_div(products.depth, splits);
      part.count *= splits;
      const double time = cycles(tile, part, device) + cycles_of_sum(splits, products, device);
      if (time < best.first) best = {time, {tile, splits}};
    }
    choices.push_back(best);
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<GemmChoice> result;
  for (const auto& choice : choices) {
    if (result.size() < count) result.push_back(choice.second);
  }
  return result;
}

std::vector<GemmTile> gemm_tiles(const Products& products, const DeviceInfo& device) {
  std::vector<GemmTile> tiles;
  for (const GemmChoice& choice : choose_tiles(products, device, device.is_cpu() ? 1 : 4, 1)) {
    tiles.push_back(choice.tile);
  }
  return tiles;
}

void set_tile(kernel::Launch& launch, const GemmTile& tile, bool vec_n, TileArith arith,
              const Products& products) {
  launch.macro("TM", tile.tm).macro("TN", tile.tn).macro("TK", tile.tk);
  launch.macro("RM", tile.rm).macro("RN", tile.rn).macro("SLICES", tile.slices);
  launch.macro("VEC_N", vec_n ? 1 : 0).macro("TILE_ARITH", static_cast<int>(arith));
  const std::size_t items = uz(tile.items());
  launch.range({uz(ceil_div(products.cols, tile.tn)) * items, uz(ceil_div(products.rows, tile.tm)),
                uz(products.count)},
               {items});
}

void set_words(kernel::Launch& launch, const DeviceInfo& device, bool a_sums, bool b_sums) {
  kernel::set_dot8(launch, device.dot8).macro("A_SUMS", a_sums ? 1 : 0);
  launch.macro("B_SUMS", b_sums ? 1 : 0);
}

Products in_words(Products products) {
  products.depth = ceil_div(products.depth, 4);
  return products;
}

void set_dot_tile(kernel::Launch& launch, int rm, int rn, int vec, const Products& products) {
  // Small groups, because a CPU distributes whole groups to its cores.
  constexpr std::size_t kGroup = 4;
  launch.macro("RM", rm).macro("RN", rn).macro("VEC", vec);
  launch.range(
      {uz(ceil_div(products.cols, rn)), uz(ceil_div(products.rows, rm)), uz(products.count)},
      {kGroup, 1, 1});
}

}  // namespace clgpu::ops
