// dot.cl - dst[b, m, n] = act(sum over k of x[b, m, k] * y[b, n, k]) in tiles, on CPUs (adj_y only)
//
// Shapes    x: [..., rows, depth]; y: [..., cols, depth]; dst: [b0, b1, b2, b3, rows, cols]
//           batches of x and y: see batch_matmul/batches.cl
// Launch    one work-item per tile of RM rows and RN columns: global = (ceil(cols / RN) rounded up,
//           ceil(rows / RM), batches), local size 1 along axis 2
// Macros    X_T, Y_T, DST_T  float|half, or char|short and DST_T int with QUANTIZED  element types
//           ZEROS  0|1  1: subtract the zero points, the last arguments, from x and y
//           and those of common/epilogue.cl; BIAS and RESIDUAL are 0
// Numerics  see common/dot.cl (RM, RN, VEC)
#define A_T X_T
#define B_T Y_T
#define DOT_ZEROS ZEROS
#include "batch_matmul/batches.cl"
#include "batch_matmul/zeros.cl"
#include "common/dot.cl"
#include "common/epilogue.cl"

__kernel __attribute__((vec_type_hint(DOT_VEC))) void batch_matmul_dot(
    __global const X_T *x, __global const Y_T *y, BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows,
    int cols, int depth, BATCH_PARAMETERS ZERO_PARAMETERS) {
  const int n0 = get_global_id(0) * RN;
  const int m0 = get_global_id(1) * RM;
  const int batch = get_global_id(2);
  if (n0 >= cols) return;
  SUM_T sums[RM * RN];
  x += BATCH_OFFSET_X(batch) * rows * depth;
  y += BATCH_OFFSET_Y(batch) * depth * cols;
#if ZEROS
  dot_tile(x, y, rows, cols, depth, m0, n0, sums, x_zero, y_zero);
#else
  dot_tile(x, y, rows, cols, depth, m0, n0, sums);
#endif
  dst += batch * rows * cols;
#pragma unroll
  for (int i = 0; i < RM; ++i) {
#pragma unroll
    for (int j = 0; j < RN; ++j) {
      const int m = m0 + i, n = n0 + j;
      if (m < rows && n < cols) {
        const int at = m * cols + n;
        STORE(DST_T, dst, at, FINISH_SUM(sums[i * RN + j], CHANNEL_AT(n), at));
      }
    }
  }
}
