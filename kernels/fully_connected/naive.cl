// naive.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n]), one item per element
//
// Shapes    src: [rows, depth]; weights: [cols, depth]; bias: [cols]; dst: [rows, cols]
// Launch    global = (rows * cols rounded up, 1, 1), any local
// Macros    SRC_T      float|half  element type of src
//           WEIGHTS_T  float|half  element type of weights
//           DST_T      float|half  element type of dst
//           and those of common/epilogue.cl
// Numerics  one float accumulator; the bias is added last
#include "common/epilogue.cl"
#include "common/types.cl"
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef WEIGHTS_T
#error "WEIGHTS_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif

__kernel void fully_connected_naive(__global const SRC_T *src, __global const WEIGHTS_T *weights,
                                    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
                                    int depth) {
  const int i = get_global_id(0);
  if (i >= rows * cols) return;
  const int m = i / cols, n = i % cols;
  float sum = 0.0f;
  for (int k = 0; k < depth; ++k) {
    sum += LOAD(SRC_T, src, m * depth + k) * LOAD(WEIGHTS_T, weights, n * depth + k);
  }
  const int at = RESULT_AT(m, n, cols);
  STORE(DST_T, dst, at, FINISH(sum + BIAS_AT(n), at));
}
