// tiles.cl - dst[r, n] = act(sum over k of x[X_ROW(r), k] * weights[expert of r, n, k]), tiles in registers
//
// Shapes    x: [.., depth]; weights: [experts, cols, depth], or [experts, depth, cols] with TRANSPOSED;
//           dst: [rows, cols]; see experts/place.cl
// Launch    one work-item per tile of at most RM rows and RN columns (VW columns with TRANSPOSED):
//           global = (tiles of columns rounded up, tiles of rows)
// Macros    X_T, WEIGHTS_T, DST_T  float|half  element types of x, weights, dst
//           TRANSPOSED  0|1   1: the columns of a matrix are neighbours, otherwise its depth
//           RM          1..8  rows of a tile; 1 if not SORTED
//           RN          1..8  columns of a tile
//           and those of experts/place.cl, common/vector.cl (SUM_T float, VW 4..16) and common/activation.cl
// Numerics  float sums; VW partial sums, added pairwise at the end, or one with TRANSPOSED
#include "common/activation.cl"
#include "common/vector.cl"
#include "experts/place.cl"

#if VW == 16
#define ADDED(v) added8((v).lo + (v).hi)
static inline float added8(float8 v) {
  const float4 w = v.lo + v.hi;
  const float2 u = w.lo + w.hi;
  return u.x + u.y;
}
#else
#define ADDED(v) ((v).s0 + (v).s1 + ((v).s2 + (v).s3))
#endif

__kernel void experts_tiles(__global const X_T *x, __global const WEIGHTS_T *weights,
                            PLACE_PARAMS __global DST_T *dst, int cols, int depth, int experts,
                            int each, int share) {
  const int n0 = (int)get_global_id(0) * (TRANSPOSED ? VW : RN);
  const int tile = get_global_id(1);
  const int count = ROWS_OF(tile);
  if (n0 >= cols || count == 0) return;
  const int expert = EXPERT_OF(tile);
  const int known = expert >= 0 && expert < experts;
  weights += (size_t)(known ? expert : 0) * cols * depth;
  __global const X_T *rows[RM];
#pragma unroll
  for (int i = 0; i < RM; ++i) rows[i] = x + (size_t)X_ROW(ROW_OF(tile, min(i, count - 1))) * depth;
#if TRANSPOSED
  VEC sums[RM];
#pragma unroll
  for (int i = 0; i < RM; ++i) sums[i] = (VEC)(0.0f);
  if (n0 + VW <= cols) {
    for (int k = 0; known && k < depth; ++k) {
      const VEC w = LOAD_VEC(WEIGHTS_T, weights, (size_t)k * cols + n0);
#pragma unroll
      for (int i = 0; i < RM; ++i) sums[i] = MAD_VEC((VEC)(LOAD(X_T, rows[i], k)), w, sums[i]);
    }
#pragma unroll
    for (int i = 0; i < RM; ++i) {
      if (i < count) STORE_VEC(DST_T, dst, (size_t)ROW_OF(tile, i) * cols + n0, ACTIVATE(sums[i]));
    }
    return;
  }
  for (int i = 0; i < count; ++i) {
    __global const X_T *row = x + (size_t)X_ROW(ROW_OF(tile, i)) * depth;
    for (int n = n0; n < cols; ++n) {
      float sum = 0.0f;
      for (int k = 0; known && k < depth; ++k)
        sum = mad(LOAD(X_T, row, k), LOAD(WEIGHTS_T, weights, (size_t)k * cols + n), sum);
      STORE(DST_T, dst, (size_t)ROW_OF(tile, i) * cols + n, ACTIVATE(sum));
    }
  }
#else
  __global const WEIGHTS_T *columns[RN];
  VEC sums[RM * RN];
#pragma unroll
  for (int j = 0; j < RN; ++j) columns[j] = weights + (size_t)min(n0 + j, cols - 1) * depth;
#pragma unroll
  for (int i = 0; i < RM * RN; ++i) sums[i] = (VEC)(0.0f);
  int k = known ? 0 : depth;
  for (; k + VW <= depth; k += VW) {
    VEC w[RN];
#pragma unroll
    for (int j = 0; j < RN; ++j) w[j] = LOAD_VEC(WEIGHTS_T, columns[j], k);
#pragma unroll
    for (int i = 0; i < RM; ++i) {
      const VEC v = LOAD_VEC(X_T, rows[i], k);
#pragma unroll
      for (int j = 0; j < RN; ++j) sums[i * RN + j] = MAD_VEC(v, w[j], sums[i * RN + j]);
    }
  }
#pragma unroll
  for (int i = 0; i < RM; ++i) {
#pragma unroll
    for (int j = 0; j < RN; ++j) {
      float sum = ADDED(sums[i * RN + j]);
      for (int t = k; t < depth; ++t)
        sum = mad(LOAD(X_T, rows[i], t), LOAD(WEIGHTS_T, columns[j], t), sum);
      if (i < count && n0 + j < cols)
        STORE(DST_T, dst, (size_t)ROW_OF(tile, i) * cols + n0 + j, ACTIVATE(sum));
    }
  }
#endif
}
