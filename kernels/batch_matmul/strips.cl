// strips.cl - dst[b, m, n] = act(sum over k of x(b, m, k) * y[b, k, n]), strips of VEC columns, on CPUs
//
// Shapes    x: [..., rows, depth], or [..., depth, rows] if ADJ_X; y: [..., depth, cols];
//           dst: [b0, b1, b2, b3, rows, cols]
//           batches of x and y: see batch_matmul/batches.cl
// Launch    one work-item per RM rows and VEC columns: global = (ceil(cols / VEC) rounded up,
//           ceil(rows / RM), batches), local size 1 along axis 2
// Macros    X_T, Y_T, DST_T  float|half, or char|short and DST_T int with QUANTIZED  element types
//           ADJ_X  0|1         1: x is transposed
//           RM     1..8        rows of a work-item
//           VEC    8|16        columns of a work-item
//           ZEROS  0|1         1: subtract the zero points, the last arguments, from x and y
//           and those of common/epilogue.cl; BIAS and RESIDUAL are 0
// Numerics  one accumulator per element, SUM_T
#include "batch_matmul/batches.cl"
#include "batch_matmul/zeros.cl"
#include "common/epilogue.cl"
#include "common/types.cl"

#define STRIP CLGPU_CAT(SUM_T, VEC)
#define LOAD_STRIP(T, p, i) \
  CLGPU_CAT(convert_, STRIP)(CLGPU_CAT(CLGPU_CAT(CLGPU_CAT(load, VEC), _), T)(p, i))
#define STORE_STRIP(T, p, i, v) CLGPU_CAT(CLGPU_CAT(CLGPU_CAT(store, VEC), _), T)(p, i, v)
#define FINISH_STRIP CLGPU_CAT(FINISH_SUM, VEC)
#define CHANNELS_AT CLGPU_CAT(CLGPU_CAT(CHANNEL, VEC), _AT)
#if ADJ_X
#define X_AT(m, k) ((k) * rows + (m))
#else
#define X_AT(m, k) ((m) * depth + (k))
#endif

__kernel __attribute__((vec_type_hint(STRIP))) void batch_matmul_strips(
    __global const X_T *x, __global const Y_T *y, BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows,
    int cols, int depth, BATCH_PARAMETERS ZERO_PARAMETERS) {
  const int n0 = get_global_id(0) * VEC;
  const int m0 = get_global_id(1) * RM;
  const int batch = get_global_id(2);
  if (n0 >= cols) return;
  x += BATCH_OFFSET_X(batch) * rows * depth;
  y += BATCH_OFFSET_Y(batch) * depth * cols;
  dst += batch * rows * cols;
  int m[RM];
#pragma unroll
  for (int i = 0; i < RM; ++i) m[i] = min(m0 + i, rows - 1);  // past the end: repeat the last row
  if (n0 + VEC <= cols) {
    STRIP acc[RM];
#pragma unroll
    for (int i = 0; i < RM; ++i) acc[i] = (STRIP)(0);
    for (int k = 0; k < depth; ++k) {
      const STRIP right = Y_VALUE(LOAD_STRIP(Y_T, y, k * cols + n0));
#pragma unroll
      for (int i = 0; i < RM; ++i) acc[i] += X_VALUE((SUM_T)LOAD(X_T, x, X_AT(m[i], k))) * right;
    }
#pragma unroll
    for (int i = 0; i < RM; ++i) {
      if (m0 + i < rows) {
        const int at = (m0 + i) * cols + n0;
        STORE_STRIP(DST_T, dst, at, FINISH_STRIP(acc[i], CHANNELS_AT(n0), at));
      }
    }
  } else {
    for (int n = n0; n < cols; ++n) {
      SUM_T acc[RM];
#pragma unroll
      for (int i = 0; i < RM; ++i) acc[i] = 0;
      for (int k = 0; k < depth; ++k) {
        const SUM_T right = Y_VALUE((SUM_T)LOAD(Y_T, y, k * cols + n));
#pragma unroll
        for (int i = 0; i < RM; ++i) acc[i] += X_VALUE((SUM_T)LOAD(X_T, x, X_AT(m[i], k))) * right;
      }
#pragma unroll
      for (int i = 0; i < RM; ++i) {
        if (m0 + i < rows) {
          const int at = (m0 + i) * cols + n;
          STORE(DST_T, dst, at, FINISH_SUM(acc[i], CHANNEL_AT(n), at));
        }
      }
    }
  }
}
