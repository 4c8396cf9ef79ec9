// naive.cl - dst[b, m, n] = act(sum over k of x(b, m, k) * y(b, k, n)), one item per element
//
// Shapes    x: [..., rows, depth], or [..., depth, rows] where ADJ_X; y: [..., depth, cols], or
//           [..., cols, depth] where ADJ_Y; dst: [b0, b1, b2, b3, rows, cols]
//           batch_matmul/batches.cl says how the batches of x and y are found
// Launch    global = (rows * cols rounded up, 1, batches), any local of one item along axis 2
// Macros    X_T    float|half  element type of x
//           Y_T    float|half  element type of y
//           DST_T  float|half  element type of dst
//           ADJ_X  0|1         x is transposed
//           ADJ_Y  0|1         y is transposed
// Numerics  one float accumulator; ACT and ACT_ALPHA: see common/activation.cl
#include "batch_matmul/batches.cl"
#include "common/activation.cl"
#include "common/types.cl"
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

__kernel void batch_matmul_naive(__global const X_T *x, __global const Y_T *y, __global DST_T *dst,
                                 int rows, int cols, int depth, BATCH_PARAMETERS) {
  const int at = get_global_id(0);
  if (at >= rows * cols) return;
  const int batch = get_global_id(2);
  x += BATCH_OFFSET_X(batch) * rows * depth;
  y += BATCH_OFFSET_Y(batch) * depth * cols;
  dst += batch * rows * cols;
  const int m = at / cols, n = at % cols;
  float sum = 0.0f;
  for (int k = 0; k < depth; ++k) {
#if ADJ_X
    const float left = LOAD(X_T, x, k * rows + m);
#else
    const float left = LOAD(X_T, x, m * depth + k);
#endif
#if ADJ_Y
    const float right = LOAD(Y_T, y, n * depth + k);
#else
    const float right = LOAD(Y_T, y, k * cols + n);
#endif
    sum += left * right;
  }
  STORE(DST_T, dst, at, ACTIVATE(sum));
}
