// gemm.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n] + residual[m, n]) in local-memory tiles
//
// Shapes    src: [rows, depth]; weights: [cols, depth]; bias: [cols]; dst: [rows, cols]
// Launch    one work-group per tile: global = (ceil(cols / (GX * RN)) * GX * GY,
//           ceil(rows / (GY * RM)), 1), local = (GX * GY, 1, 1)
// Macros    SRC_T      float|half  element type of src
//           WEIGHTS_T  float|half  element type of weights
//           DST_T      float|half  element type of dst
//           BIAS, BIAS_T, RESIDUAL, RESIDUAL_T, ACT, ACT_ALPHA  see common/epilogue.cl
// Numerics  see common/gemm.cl (GX, GY, RM, RN, KT) and common/epilogue.cl
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef WEIGHTS_T
#error "WEIGHTS_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif
#define A_T SRC_T
#define B_T WEIGHTS_T
#define A_TRANSPOSED 0
#define B_TRANSPOSED 1
#include "common/epilogue.cl"
#include "common/gemm.cl"

__kernel __attribute__((reqd_work_group_size(GX * GY, 1, 1))) void fully_connected_gemm(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM __global DST_T *dst, int rows, int cols, int depth) {
  GEMM_LOCAL(src_stage, weights_stage);
  const int m0 = get_group_id(1) * GEMM_ROWS, n0 = get_group_id(0) * GEMM_COLS;
  GEMM_VEC acc[RM];
#pragma unroll
  for (int i = 0; i < RM; ++i) acc[i] = (GEMM_VEC)(0.0f);
  gemm_tile(src, weights, src_stage, weights_stage, rows, cols, depth, m0, n0, acc);

  const int item = get_local_id(0);
  const int m = m0 + item / GX * RM, n = n0 + item % GX * RN;
#pragma unroll
  for (int i = 0; i < RM; ++i) {
    float row[RN];
    CLGPU_CAT(vstore, RN)(acc[i], 0, row);
#pragma unroll
    for (int j = 0; j < RN; ++j) {
      if (m + i < rows && n + j < cols) {
        const int at = (m + i) * cols + n + j;
        STORE(DST_T, dst, at, FINISH(row[j] + BIAS_AT(n + j), at));
      }
    }
  }
}
