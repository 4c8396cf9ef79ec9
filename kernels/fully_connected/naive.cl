// naive.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n]), one item per element
//
// Shapes    src: [rows, depth]; weights: [cols, depth]; bias: [cols]; dst: [rows, cols]
// Launch    global = (rows * cols rounded up, 1, 1), any local
// Macros    SRC_T      float|half  element type of src
//           WEIGHTS_T  float|half  element type of weights
//           BIAS_T     float|half  element type of bias; any where HAS_BIAS is 0
//           DST_T      float|half  element type of dst
//           HAS_BIAS   0|1         the parameter bias exists
// Numerics  one float accumulator; ACT and ACT_ALPHA: see common/activation.cl
#include "common/activation.cl"
#include "common/types.cl"
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef WEIGHTS_T
#error "WEIGHTS_T is required (float or half)"
#endif
#ifndef BIAS_T
#error "BIAS_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif
#ifndef HAS_BIAS
#error "HAS_BIAS is required (0 or 1)"
#endif

__kernel void fully_connected_naive(__global const SRC_T *src, __global const WEIGHTS_T *weights,
#if HAS_BIAS
                                    __global const BIAS_T *bias,
#endif
                                    __global DST_T *dst, int rows, int cols, int depth) {
  const int at = get_global_id(0);
  if (at >= rows * cols) return;
  const int m = at / cols, n = at % cols;
  float sum = 0.0f;
  for (int k = 0; k < depth; ++k) {
    sum += LOAD(SRC_T, src, m * depth + k) * LOAD(WEIGHTS_T, weights, n * depth + k);
  }
#if HAS_BIAS
  sum += LOAD(BIAS_T, bias, n);
#endif
  STORE(DST_T, dst, at, ACTIVATE(sum));
}
