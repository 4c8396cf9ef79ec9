// Tiles of matrix products.
#include "ops/matmul.hpp"

#include <algorithm>

namespace clgpu::ops {

std::vector<GemmTile> gemm_tiles(const MatmulSize& size, std::int64_t batches,
                                 const DeviceInfo& device) {
  // Largest first. A large tile reads the matrices less often, but only pays when there are
  // enough tiles to keep all compute units busy.
  static constexpr GemmTile kTiles[] = {{"gemm_128x128", 16, 16, 8, 8, 16},
                                        {"gemm_64x64", 16, 16, 4, 4, 16},
                                        {"gemm_32x32", 8, 8, 4, 4, 16}};
  std::vector<GemmTile> fitting, others;
  for (const GemmTile& tile : kTiles) {
    // A CPU runs a group item by item: a tile for it is what one core's cache holds.
    if (device.is_cpu() && tile.items() > 64) continue;
    if (tile.items() > device.max_work_group_size) continue;
    if (tile.items() > device.max_work_item_sizes[0]) continue;
    if (tile.local_bytes() > device.local_bytes) continue;
    const int tile_rows = tile.gy * tile.rm, tile_cols = tile.gx * tile.rn;
    // Half-empty tiles waste arithmetic: leave them to the next smaller tile.
    const bool is_filled = size.rows > tile_rows / 2 && size.cols > tile_cols / 2;
    const std::int64_t tiles =
        ceil_div(size.rows, tile_rows) * ceil_div(size.cols, tile_cols) * batches;
    (is_filled && tiles >= device.compute_units ? fitting : others).push_back(tile);
  }
  // Of those that do not fit the smallest wastes least.
  fitting.insert(fitting.end(), others.rbegin(), others.rend());
  return fitting;
}

void set_gemm_tile(kernel::Launch& launch, const GemmTile& tile, const MatmulSize& size,
                   std::int64_t batches) {
  launch.macro("GX", tile.gx).macro("GY", tile.gy).macro("RM", tile.rm).macro("RN", tile.rn);
  launch.macro("KT", tile.kt);
  launch.range({uz(ceil_div(size.cols, tile.gx * tile.rn)) * tile.items(),
                uz(ceil_div(size.rows, tile.gy * tile.rm)), uz(batches)},
               {tile.items(), 1, 1});
}

void set_dot_tile(kernel::Launch& launch, int rm, int rn, int vec, const MatmulSize& size,
                  std::int64_t batches) {
  // Small groups: they are what a CPU's cores share out among each other.
  constexpr std::size_t kGroup = 4;
  launch.macro("RM", rm).macro("RN", rn).macro("VEC", vec);
  launch.range({uz(ceil_div(size.cols, rn)), uz(ceil_div(size.rows, rm)), uz(batches)},
               {kGroup, 1, 1});
}

}  // namespace clgpu::ops
