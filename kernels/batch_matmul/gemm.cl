// gemm.cl - dst[b, m, n] = act(sum over k of x(b, m, k) * y(b, k, n)) in local-memory tiles
//
// Shapes    x: [..., rows, depth], or [..., depth, rows] where ADJ_X; y: [..., depth, cols], or
//           [..., cols, depth] where ADJ_Y; dst: [b0, b1, b2, b3, rows, cols]
//           batch_matmul/batches.cl says how the batches of x and y are found
// Launch    one work-group per tile: global = (ceil(cols / (GX * RN)) * GX * GY,
//           ceil(rows / (GY * RM)), batches), local = (GX * GY, 1, 1)
// Macros    X_T    float|half  element type of x
//           Y_T    float|half  element type of y
//           DST_T  float|half  element type of dst
//           ADJ_X  0|1         x is transposed
//           ADJ_Y  0|1         y is transposed
// Numerics  see common/gemm.cl (GX, GY, RM, RN, KT) and common/activation.cl (ACT, ACT_ALPHA)
#ifndef X_T
#error "X_T is required (float or half)"
#endif
#ifndef Y_T
#error "Y_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif
#ifndef ADJ_X
#error "ADJ_X is required (0 or 1)"
#endif
#ifndef ADJ_Y
#error "ADJ_Y is required (0 or 1)"
#endif
#define A_T X_T
#define B_T Y_T
#define A_TRANSPOSED ADJ_X
#define B_TRANSPOSED ADJ_Y
#include "batch_matmul/batches.cl"
#include "common/activation.cl"
#include "common/gemm.cl"

__kernel __attribute__((reqd_work_group_size(GX * GY, 1, 1))) void batch_matmul_gemm(
    __global const X_T *x, __global const Y_T *y, __global DST_T *dst, int rows, int cols,
    int depth, BATCH_PARAMETERS) {
  GEMM_LOCAL(x_stage, y_stage);
  const int batch = get_group_id(2);
  x += BATCH_OFFSET_X(batch) * rows * depth;
  y += BATCH_OFFSET_Y(batch) * depth * cols;
  dst += batch * rows * cols;
  const int m0 = get_group_id(1) * GEMM_ROWS, n0 = get_group_id(0) * GEMM_COLS;
  GEMM_VEC acc[RM];
#pragma unroll
  for (int i = 0; i < RM; ++i) acc[i] = (GEMM_VEC)(0.0f);
  gemm_tile(x, y, x_stage, y_stage, rows, cols, depth, m0, n0, acc);

  const int item = get_local_id(0);
  const int m = m0 + item / GX * RM, n = n0 + item % GX * RN;
#pragma unroll
  for (int i = 0; i < RM; ++i) {
    float row[RN];
    CLGPU_CAT(vstore, RN)(acc[i], 0, row);
#pragma unroll
    for (int j = 0; j < RN; ++j) {
      if (m + i < rows && n + j < cols) {
        STORE(DST_T, dst, (m + i) * cols + n + j, ACTIVATE(row[j]));
      }
    }
  }
}
