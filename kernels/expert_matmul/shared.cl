// shared.cl - dst[r, n] = act(sum over k of x[X_ROW(r), k] * weights[expert of r, n, k]), few rows, on GPUs
//
// Shapes    x: [.., depth]; weights: [experts, cols, depth]; dst: [rows, cols]; see expert_matmul/place.cl
// Launch    work-groups of ROWS * LANES work-items make ROWS columns of a row of dst: global =
//           (ceil(cols / ROWS) * ROWS * LANES, rows)
// Macros    X_T, WEIGHTS_T, DST_T  float|half  element types of x, weights, dst
//           LANES  2..64, a power of two  work-items of a dot product, which read neighbouring elements
//           ROWS   1..                    dot products of a work-group
//           and those of expert_matmul/place.cl (SORTED 0), common/vector.cl (SUM_T float, VW 1 or 4; depth is a
//           multiple of VW) and common/activation.cl
// Numerics  LANES * VW partial sums in float, then pairwise
#include "common/activation.cl"
#include "common/local.cl"
#include "common/vector.cl"
#include "expert_matmul/place.cl"

#if VW == 4
#define ADDED(v) ((v).s0 + (v).s1 + ((v).s2 + (v).s3))
#else
#define ADDED(v) (v)
#endif

__kernel __attribute__((reqd_work_group_size(ROWS * LANES, 1, 1))) void expert_matmul_shared(
    __global const X_T *x, __global const WEIGHTS_T *weights, PLACE_PARAMS __global DST_T *dst,
    int cols, int depth, int experts, int each, int share) {
  LOCAL_ARRAY(float, parts, ROWS *LANES);
  const int item = get_local_id(0), lane = item % LANES;
  const int row = get_global_id(1);
  const int n = (int)get_group_id(0) * ROWS + item / LANES;
  const int expert = EXPERT_OF(row);
  VEC sum = (VEC)(0.0f);
  if (n < cols && expert >= 0 && expert < experts) {
    weights += ((size_t)expert * cols + n) * depth;
    x += (size_t)X_ROW(row) * depth;
    for (int k = lane * VW; k < depth; k += LANES * VW)
      sum = MAD_VEC(LOAD_VEC(X_T, x, k), LOAD_VEC(WEIGHTS_T, weights, k), sum);
  }
  parts[item] = ADDED(sum);
  for (int step = LANES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) parts[item] += parts[item + step];
  }
  if (lane == 0 && n < cols) {
    const float total = parts[item];
    STORE(DST_T, dst, (size_t)row * cols + n, ACTIVATE(total));
  }
}
