// dot.cl - dst[b, m, n] = act(sum over k of x[b, m, k] * y[b, n, k]) in tiles, on CPUs (adj_y only)
//
// Shapes    x: [..., rows, depth]; y: [..., cols, depth]; dst: [b0, b1, b2, b3, rows, cols]
//           batch_matmul/batches.cl says how the batches of x and y are found
// Launch    one work-item per tile of RM rows and RN columns: global = (ceil(cols / RN) rounded up,
//           ceil(rows / RM), batches), local of one item along axis 2
// Macros    X_T    float|half  element type of x
//           Y_T    float|half  element type of y
//           DST_T  float|half  element type of dst
// Numerics  see common/dot.cl (RM, RN, VEC) and common/activation.cl (ACT, ACT_ALPHA)
#ifndef X_T
#error "X_T is required (float or half)"
#endif
#ifndef Y_T
#error "Y_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif
#define A_T X_T
#define B_T Y_T
#include "batch_matmul/batches.cl"
#include "common/activation.cl"
#include "common/dot.cl"

__kernel __attribute__((vec_type_hint(DOT_VEC))) void batch_matmul_dot(
    __global const X_T *x, __global const Y_T *y, __global DST_T *dst, int rows, int cols,
    int depth, BATCH_PARAMETERS) {
  const int n0 = get_global_id(0) * RN;
  const int m0 = get_global_id(1) * RM;
  const int batch = get_global_id(2);
  if (n0 >= cols) return;
  float sums[RM * RN];
  dot_tile(x + BATCH_OFFSET_X(batch) * rows * depth, y + BATCH_OFFSET_Y(batch) * depth * cols, rows,
           cols, depth, m0, n0, sums);
  dst += batch * rows * cols;
#pragma unroll
  for (int i = 0; i < RM; ++i) {
#pragma unroll
    for (int j = 0; j < RN; ++j) {
      const int m = m0 + i, n = n0 + j;
      if (m < rows && n < cols) STORE(DST_T, dst, m * cols + n, ACTIVATE(sums[i * RN + j]));
    }
  }
}
