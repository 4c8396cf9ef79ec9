// dot.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n] + residual[m, n]) in tiles, on CPUs
//
// Shapes    src: [rows, depth]; weights: [cols, depth]; bias: [cols]; dst: [rows, cols]
// Launch    one work-item per tile of RM rows and RN columns: global = (ceil(cols / RN) rounded up,
//           ceil(rows / RM), 1), any local
// Macros    SRC_T, WEIGHTS_T, DST_T  float|half, or char|uchar|short with QUANTIZED  element types
//           WEIGHTS_ZERO             0|1  1: weights have a zero point, the last argument
//           and those of common/epilogue.cl
// Numerics  see common/dot.cl (RM, RN, VEC) and common/epilogue.cl
#define A_T SRC_T
#define B_T WEIGHTS_T
#define DOT_ZEROS WEIGHTS_ZERO
#include "common/dot.cl"
#include "common/epilogue.cl"
#include "fully_connected/zero.cl"

__kernel __attribute__((vec_type_hint(DOT_VEC))) void fully_connected_dot(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols, int depth WEIGHTS_ZERO_PARAM) {
  const int n0 = get_global_id(0) * RN;
  const int m0 = get_global_id(1) * RM;
  if (n0 >= cols) return;
  SUM_T sums[RM * RN];
#if WEIGHTS_ZERO
  dot_tile(src, weights, rows, cols, depth, m0, n0, sums, 0, weights_zero);
#else
  dot_tile(src, weights, rows, cols, depth, m0, n0, sums);
#endif
#pragma unroll
  for (int i = 0; i < RM; ++i) {
#pragma unroll
    for (int j = 0; j < RN; ++j) {
      const int m = m0 + i, n = n0 + j;
      if (m < rows && n < cols) {
        const int at = RESULT_AT(m, n, cols);
        STORE(DST_T, dst, at, FINISH_SUM(sums[i * RN + j], CHANNEL_AT(n), at));
      }
    }
  }
}
