// How the matrix products of FULLY_CONNECTED and BATCH_MATMUL are cut into tiles.
#pragma once

#include "ops/common.hpp"

namespace clgpu::ops {

/// c[m, n] = sum over k of a(m, k) * b(k, n).
struct MatmulSize {
  int rows, cols, depth;
};

/// Tile of kernels/common/gemm.cl: a work-group of gx * gy items, each keeping rm * rn results.
struct GemmTile {
  const char* name;
  int gx, gy, rm, rn, kt;
  std::size_t items() const { return static_cast<std::size_t>(gx) * static_cast<std::size_t>(gy); }
  std::size_t local_bytes() const {
    return static_cast<std::size_t>(kt) * static_cast<std::size_t>((gy + 1) * rm + (gx + 1) * rn) *
           4;
  }
};

/// Tiles the device can run, best guess first; `batches` products are computed by one launch.
std::vector<GemmTile> gemm_tiles(const MatmulSize& size, std::int64_t batches,
                                 const DeviceInfo& device);

/// Sets the macros GX, GY, RM, RN, KT and the range of a launch.
void set_gemm_tile(kernel::Launch& launch, const GemmTile& tile, const MatmulSize& size,
                   std::int64_t batches);

/// Sets the macros RM, RN, VEC of kernels/common/dot.cl and the range of a launch.
void set_dot_tile(kernel::Launch& launch, int rm, int rn, int vec, const MatmulSize& size,
                  std::int64_t batches);

}  // namespace clgpu::ops
