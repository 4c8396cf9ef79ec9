// naive.cl - dst[b, m, n] = act(sum over k of x(b, m, k) * y(b, k, n)), one item per element
//
// Shapes    x: [..., rows, depth], or [..., depth, rows] if ADJ_X; y: [..., depth, cols], or
//           [..., cols, depth] if ADJ_Y; dst: [b0, b1, b2, b3, rows, cols]
//           batches of x and y: see batch_matmul/batches.cl
// Launch    global = (rows * cols rounded up, 1, batches), any local size that is 1 along axis 2
// Macros    X_T, Y_T, DST_T  float|half, or char|short and DST_T int with QUANTIZED  element types
//           ADJ_X  0|1         1: x is transposed
//           ADJ_Y  0|1         1: y is transposed
//           ZEROS  0|1         1: subtract the zero points, the last arguments, from x and y
//           and those of common/epilogue.cl; BIAS and RESIDUAL are 0
// Numerics  one accumulator, SUM_T
#include "batch_matmul/batches.cl"
#include "batch_matmul/zeros.cl"
#include "common/epilogue.cl"
#include "common/types.cl"

__kernel void batch_matmul_naive(__global const X_T *x, __global const Y_T *y,
                                 BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
                                 int depth, BATCH_PARAMETERS ZERO_PARAMETERS) {
  const int at = get_global_id(0);
  if (at >= rows * cols) return;
  const int batch = get_global_id(2);
  x += BATCH_OFFSET_X(batch) * rows * depth;
  y += BATCH_OFFSET_Y(batch) * depth * cols;
  dst += batch * rows * cols;
  const int m = at / cols, n = at % cols;
  SUM_T sum = 0;
  for (int k = 0; k < depth; ++k) {
#if ADJ_X
    const SUM_T left = LOAD(X_T, x, k * rows + m);
#else
    const SUM_T left = LOAD(X_T, x, m * depth + k);
#endif
#if ADJ_Y
    const SUM_T right = LOAD(Y_T, y, n * depth + k);
#else
    const SUM_T right = LOAD(Y_T, y, k * cols + n);
#endif
    sum += X_VALUE(left) * Y_VALUE(right);
  }
  STORE(DST_T, dst, at, FINISH_SUM(sum, CHANNEL_AT(n), at));
}
