// Products of matrices, and the tiles that a work-group computes: kernels/common/tile.cl.
#pragma once

#include <string>
#include <vector>

#include "ops/shared/common.hpp"

namespace clgpu::ops {

/// c[m, n] = sum over k of a(m, k) * b(k, n), `count` times: in batches, or groups.
struct Products {
  std::int64_t rows, cols, depth, count;
};

/// tm rows x tn columns, in steps of tk of depth; an item keeps rm x rn sums of its slice.
struct GemmTile {
  int tm, tn, tk, rm, rn;
  int slices;  ///< parts of a work-group that share the depth of a step

  int items() const { return tm / rm * (tn / rn) * slices; }
  std::size_t local_bytes() const;
  /// "128x64", "32x32_slices4"; unique among all_tiles().
  std::string name() const;
  bool fits(const DeviceInfo& device) const;
};

/// A tile, and the number of work-groups that share its depth: 1, or another launch adds their
/// sums.
struct GemmChoice {
  GemmTile tile;
  std::int64_t splits;
};

/// The best `count` tiles that the device can run, by an estimate of their time; each with its best
/// number of splits up to `most_splits`.
std::vector<GemmChoice> choose_tiles(const Products& products, const DeviceInfo& device,
                                     std::size_t count, std::int64_t most_splits);

/// Tiles for FULLY_CONNECTED and BATCH_MATMUL, best guess first.
std::vector<GemmTile> gemm_tiles(const Products& products, const DeviceInfo& device);

/// Arithmetic of a tile: the macro TILE_ARITH of kernels/common/tile_arith.cl.
enum class TileArith { kFloat = 0, kHalf = 1, kInt8 = 2 };

/// Sets the macros of common/tile.cl except those of the epilogue, and the range: one work-group
/// per tile. vec_n: the number of elements in every row of the result is a multiple of 4, and so is
/// its beginning.
void set_tile(kernel::Launch& launch, const GemmTile& tile, bool vec_n, TileArith arith,
              const Products& products);

/// Sets the additional macros of TileArith::kInt8. a_sums: rows of a are summed since b has a zero
/// point; b_sums: columns of b since a has one.
void set_words(kernel::Launch& launch, const DeviceInfo& device, bool a_sums, bool b_sums = false);

/// A product of int8 whose depth counts words of four, for the choice of its tile.
Products in_words(Products products);

/// Sets the macros RM, RN, VEC of kernels/common/dot.cl and the range of a launch.
void set_dot_tile(kernel::Launch& launch, int rm, int rn, int vec, const Products& products);

}  // namespace clgpu::ops
