// by_expert.cl - dst[r, n] = act(sum over k of x[X_ROW(r), k] * weights[expert of r, n, k]), a matrix read for several rows
//
// Shapes    x: [.., depth]; weights: [experts, cols, depth]; dst: [rows, cols]; see expert_matmul/place.cl
// Launch    work-groups of COLS * LANES work-items make COLS columns of all rows of an expert, which each of them
//           finds by itself; those of expert number `experts` make the rows that belong to none, which are 0:
//           global = (ceil(cols / COLS) * COLS * LANES, experts + 1)
// Macros    X_T, WEIGHTS_T, DST_T  float|half  element types of x, weights, dst
//           LANES   2..64, a power of two  work-items of a dot product, which read neighbouring elements
//           COLS    1..                    dot products of a work-group
//           HEIGHT  1..8                   rows for which a matrix is read once
//           MOST    1..                    rows at most
//           and those of expert_matmul/place.cl (SORTED 0), common/vector.cl (SUM_T float, VW 1 or 4; depth is a
//           multiple of VW) and common/activation.cl
// Numerics  LANES * VW partial sums in float, then pairwise
#include "common/activation.cl"
#include "common/local.cl"
#include "common/vector.cl"
#include "expert_matmul/place.cl"

#define WG (COLS * LANES)
#if VW == 4
#define ADDED(v) ((v).s0 + (v).s1 + ((v).s2 + (v).s3))
#else
#define ADDED(v) (v)
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void expert_matmul_by_expert(
    __global const X_T *x, __global const WEIGHTS_T *weights, PLACE_PARAMS __global DST_T *dst,
    int cols, int depth, int experts, int each, int share, int rows) {
  LOCAL_ARRAY(int, found, MOST);
  LOCAL_ARRAY(int, counter, 1);
  LOCAL_ARRAY(float, parts, HEIGHT *WG);
  const int item = get_local_id(0), lane = item % LANES;
  const int expert = get_group_id(1);
  const int n = (int)get_group_id(0) * COLS + item / LANES;
  if (item == 0) counter[0] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = item; r < rows; r += WG) {
    const int e = EXPERT_OF(r);
    if ((e >= 0 && e < experts ? e : experts) == expert) found[atomic_inc(&counter[0])] = r;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int count = counter[0];
  const int end = n < cols && expert < experts ? depth : 0;
  weights += end > 0 ? ((size_t)expert * cols + n) * depth : 0;
  for (int first = 0; first < count; first += HEIGHT) {
    __global const X_T *from[HEIGHT];
    VEC sums[HEIGHT];
#pragma unroll
    for (int i = 0; i < HEIGHT; ++i) {
      const int row = found[min(first + i, count - 1)];
      from[i] = x + (size_t)X_ROW(row) * depth;
      sums[i] = (VEC)(0.0f);
    }
    for (int k = lane * VW; k < end; k += LANES * VW) {
      const VEC w = LOAD_VEC(WEIGHTS_T, weights, k);
#pragma unroll
      for (int i = 0; i < HEIGHT; ++i) {
        if (first + i < count) sums[i] = MAD_VEC(LOAD_VEC(X_T, from[i], k), w, sums[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < HEIGHT; ++i) parts[i * WG + item] = ADDED(sums[i]);
    for (int step = LANES / 2; step > 0; step /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (lane < step) {
#pragma unroll
        for (int i = 0; i < HEIGHT; ++i) parts[i * WG + item] += parts[i * WG + item + step];
      }
    }
    if (lane == 0 && n < cols) {
#pragma unroll
      for (int i = 0; i < HEIGHT; ++i) {
        const float total = parts[i * WG + item];
        if (first + i < count)
          STORE(DST_T, dst, (size_t)found[first + i] * cols + n, ACTIVATE(total));
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
