// pack_depth_nvidia.cl - weights and biases of a depthwise convolution in the order in which the lanes of a warp
//                        read them in fused_f16_nvidia.cl
//
// Shapes    weights: [TAPS, channels]; bias, expand_bias: [channels]; dst: [ceil(channels / 32),
//           32 * (PAIRS + 1 + EXPAND)] words, PAIRS = (TAPS + 1) / 2: for each pair of taps and each
//           g < 8 four words, of channels g / 2 * 8 + j * 2 + g % 2, j < 4, with the weights of both taps
//           as halves; then 32 biases in float, and with EXPAND those of the product before. Zero past
//           the last channel or tap
// Launch    one work-item per word of dst: global = (words, rounded up), local = (64)
// Macros    TAPS        1..25       pixels under the filter
//           DEPTH_BIAS  0|1         1: there is a parameter bias
//           EXPAND      0|1         1: dst has biases of the product before
//           EXPAND_BIAS 0|1         1: there is a parameter expand_bias
//           SRC_T, DEPTH_BIAS_T, EXPAND_BIAS_T  float|half  element types of weights and biases
// Numerics  float to half rounds to nearest even
#include "common/types.cl"

#define PAIRS ((TAPS + 1) / 2)

__kernel void separable_conv2d_pack_depth(__global const SRC_T *weights,
#if DEPTH_BIAS
                                          __global const DEPTH_BIAS_T *bias,
#endif
#if EXPAND_BIAS
                                          __global const EXPAND_BIAS_T *expand_bias,
#endif
                                          __global float *dst, int words, int channels) {
  const int i = get_global_id(0);
  if (i >= words) return;
  const int size = 32 * (PAIRS + 1 + EXPAND);
  const int word = i % size, first = i / size * 32;
  if (word >= 32 * PAIRS) {
    const int c = first + word % 32;
    const bool second = word >= 32 * (PAIRS + 1);
    float v = 0.0f;
#if DEPTH_BIAS
    if (!second && c < channels) v = LOAD(DEPTH_BIAS_T, bias, c);
#endif
#if EXPAND_BIAS
    if (second && c < channels) v = LOAD(EXPAND_BIAS_T, expand_bias, c);
#endif
    dst[i] = v;
  } else {
    const int pair = word / 32, g = word / 4 % 8, j = word % 4;
    const int c = first + g / 2 * 8 + j * 2 + g % 2;
    float v[2] = {0.0f, 0.0f};
    for (int t = 0; t < 2; ++t) {
      const int tap = 2 * pair + t;
      if (c < channels && tap < TAPS) v[t] = LOAD(SRC_T, weights, tap * channels + c);
    }
    __global half *to = (__global half *)(dst + i);
    STORE(half, to, 0, v[0]);
    STORE(half, to, 1, v[1]);
  }
}
