// gemm.cl - dst[r, n] = act(sum over k of x[X_ROW(r), k] * weights[expert of r, n, k]), tiles in local memory
//
// Shapes    x: [.., depth]; weights: [experts, cols, depth], or [experts, depth, cols] with TRANSPOSED;
//           dst: [rows, cols]; see expert_matmul/place.cl
// Launch    work-groups of 16 * 16 work-items make tiles of HEIGHT rows of one expert and 64 columns:
//           global = (ceil(cols / 64) * 16, tiles * 16)
// Macros    X_T, WEIGHTS_T, DST_T  float|half  element types of x, weights, dst
//           TRANSPOSED  0|1    1: the columns of a matrix are neighbours, otherwise its depth
//           HEIGHT      32|64  rows of a tile
//           and those of expert_matmul/place.cl (SORTED 1) and common/activation.cl
// Numerics  one float sum in the order of k
#include "common/activation.cl"
#include "common/local.cl"
#include "expert_matmul/place.cl"

#define SIDE 16
#define COLS 64
#define STEP 16
#define PER_ROW (HEIGHT / SIDE)
#define PER_COL (COLS / SIDE)

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void expert_matmul_gemm(
    __global const X_T *x, __global const WEIGHTS_T *weights, PLACE_PARAMS __global DST_T *dst,
    int cols, int depth, int experts, int each, int share) {
  LOCAL_ARRAY2(float, a, STEP, HEIGHT + 1);
  LOCAL_ARRAY2(float, b, STEP, COLS + 1);
  const int tile = get_group_id(1), n0 = (int)get_group_id(0) * COLS;
  const int across = get_local_id(0), down = get_local_id(1);
  const int count = ROWS_OF(tile);
  const int expert = EXPERT_OF(tile);
  const int end = count > 0 && expert >= 0 && expert < experts ? depth : 0;
  weights += (size_t)(end > 0 ? expert : 0) * cols * depth;
  size_t from[PER_ROW];  // this work-item loads element `across` of these rows
#pragma unroll
  for (int i = 0; i < PER_ROW; ++i)
    from[i] = (size_t)X_ROW(ROW_OF(tile, max(min(down + i * SIDE, count - 1), 0))) * depth;
  float sums[PER_ROW * PER_COL];
#pragma unroll
  for (int i = 0; i < PER_ROW * PER_COL; ++i) sums[i] = 0.0f;
  for (int k0 = 0; k0 < end; k0 += STEP) {
    const int k = k0 + across;
#pragma unroll
    for (int i = 0; i < PER_ROW; ++i)
      a[across][down + i * SIDE] = k < depth ? LOAD(X_T, x, from[i] + k) : 0.0f;
#pragma unroll
    for (int j = 0; j < PER_COL; ++j) {
#if TRANSPOSED
      const int n = n0 + across + j * SIDE, at = k0 + down;
      b[down][across + j * SIDE] =
          n < cols && at < depth ? LOAD(WEIGHTS_T, weights, (size_t)at * cols + n) : 0.0f;
#else
      const int n = n0 + down + j * SIDE;
      b[across][down + j * SIDE] =
          n < cols && k < depth ? LOAD(WEIGHTS_T, weights, (size_t)n * depth + k) : 0.0f;
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int t = 0; t < STEP; ++t) {
      float w[PER_COL];
#pragma unroll
      for (int j = 0; j < PER_COL; ++j) w[j] = b[t][across + j * SIDE];
#pragma unroll
      for (int i = 0; i < PER_ROW; ++i) {
        const float v = a[t][down + i * SIDE];
#pragma unroll
        for (int j = 0; j < PER_COL; ++j)
          sums[i * PER_COL + j] = mad(v, w[j], sums[i * PER_COL + j]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int i = 0; i < PER_ROW; ++i) {
    const int r = down + i * SIDE;
#pragma unroll
    for (int j = 0; j < PER_COL; ++j) {
      const int n = n0 + across + j * SIDE;
      if (r < count && n < cols)
        STORE(DST_T, dst, (size_t)ROW_OF(tile, r) * cols + n, ACTIVATE(sums[i * PER_COL + j]));
    }
  }
}
