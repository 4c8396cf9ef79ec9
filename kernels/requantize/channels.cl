// channels.cl - the share of the zero points and the bias in each output channel o:
//               start[o] = bias[o] - src_zero * sum over k of (weights[o, k] - weights_zero)
//
// Shapes    weights: element k of channel o lies at o * step_o + k * step_k
//           bias: [count]; scales: [3, pitch], the multipliers, their shifts, their upper halves;
//           followed by `extra` ints
//           dst: [5, pitch]: start, multiplier, shift, upper half of start, upper half of multiplier
//           (common/requantize.cl); entries beyond count are zero; followed by the extra ints
// Launch    one work-item per channel: global = (pitch, rounded up), local = (64)
// Macros    WEIGHTS_T  char|uchar|short  element type of weights
//           BIAS       0|1               1: there is a bias
//           BIAS_T     int|long          its element type (any if there is none)
// Numerics  exact: modulo 2^64
#include "common/types.cl"

__kernel void requantize_channels(__global const WEIGHTS_T *weights,
#if BIAS
                                  __global const BIAS_T *bias,
#endif
                                  __global const int *scales, __global int *dst, int count,
                                  int pitch, int depth, int step_o, int step_k, int src_zero,
                                  int weights_zero, int extra) {
  const int o = get_global_id(0);
  if (o >= pitch) return;
  for (int i = o; i < extra; i += pitch) dst[5 * pitch + i] = scales[3 * pitch + i];
  long start = 0;
  if (src_zero != 0 && o < count) {
    for (int k = 0; k < depth; ++k) start += weights[o * step_o + k * step_k] - weights_zero;
  }
  start *= -src_zero;
#if BIAS
  if (o < count) start += bias[o];
#endif
  dst[o] = (int)start;
  dst[pitch + o] = scales[o];
  dst[2 * pitch + o] = scales[pitch + o];
  dst[3 * pitch + o] = (int)(start >> 32);
  dst[4 * pitch + o] = scales[2 * pitch + o];
}
