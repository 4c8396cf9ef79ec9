// naive.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n]), one item per element
//
// Shapes    src: [rows, depth]; weights: [cols, depth]; bias: [cols]; dst: [rows, cols]
// Launch    global = (rows * cols rounded up, 1, 1), any local
// Macros    SRC_T, WEIGHTS_T, DST_T  float|half, or char|uchar|short with QUANTIZED  element types
//           WEIGHTS_ZERO             0|1  1: weights have a zero point, the last argument
//           and those of common/epilogue.cl
// Numerics  one accumulator, SUM_T; the bias is added last
#include "common/epilogue.cl"
#include "common/types.cl"
#include "fully_connected/zero.cl"

__kernel void fully_connected_naive(__global const SRC_T *src, __global const WEIGHTS_T *weights,
                                    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
                                    int depth WEIGHTS_ZERO_PARAM) {
  const int i = get_global_id(0);
  if (i >= rows * cols) return;
  const int m = i / cols, n = i % cols;
  SUM_T sum = 0;
  for (int k = 0; k < depth; ++k) {
    const SUM_T a = LOAD(SRC_T, src, m * depth + k);
    sum += a * WEIGHT(LOAD(WEIGHTS_T, weights, n * depth + k));
  }
  const int at = RESULT_AT(m, n, cols);
  STORE(DST_T, dst, at, FINISH_SUM(sum, CHANNEL_AT(n), at));
}
