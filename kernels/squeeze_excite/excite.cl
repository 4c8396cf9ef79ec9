// excite.cl - dst[i, p, c] = act(image[i, p, c] * gate[i, c] + residual[i, p, c])
//
//   mean[i, s]   = sum over k of partial[i, k, s] / src_pixels
//   hidden[i, h] = hidden_act(first_bias[h] + sum over s of first[h, s] * mean[i, s])
//   gate[i, c]   = gate_act(second_bias[c] + sum over h of second[c, h] * hidden[i, h])
//   With PRODUCTS 1, gate[i, c] = gate_act(second_bias[c] + sum over s of second[c, s] * mean[i, s]). Each work-group
//   computes the gate of its image.
//
// Shapes    partial: [images, chunks, src_channels], see sums.cl; first: [hidden_size, src_channels]; second: [channels,
//           hidden_size or src_channels]; first_bias: [hidden_size]; second_bias: [channels]; image, residual, dst:
//           [images, pixels, channels], dst may be image or residual, or a slice
// Launch    a work-group takes `tile` pixels: global = (ceil(pixels / tile) * WG, images, 1), local = (WG, 1, 1)
// Macros    PRODUCTS     1|2                 products behind the mean
//           WG           power of two, 1..256  work-items of a work-group
//           LANES        power of two, 1..WG   work-items that share a sum of products
//           VW           1|4|16              numbers that a work-item reads at once; channels is a multiple of it
//           NUMBERS      1..                 at least src_channels + hidden_size + channels
//           HIDDEN_ACT if PRODUCTS == 2  0..13  activation of hidden, see common/activation.cl; not 9
//           GATE_ACT     0..13               activation of gate; not 9
//           HARD         0|1                 1: gate_act is the hard sigmoid, min(max(x + 3, 0), 6) / 6
//           FIRST_BIAS   0|1                 1: there is a parameter first_bias
//           SECOND_BIAS  0|1                 1: there is a parameter second_bias
//           FIRST_T, FIRST_BIAS_T, SECOND_T, SECOND_BIAS_T, IMAGE_T, DST_T  float|half  element types
//           and those of common/vector_epilogue.cl (BIAS 0)
// Numerics  float; each sum of products has LANES * VW sums, added one after the other at the end
#include "common/local.cl"
#include "common/sum_vec.cl"
#include "common/vector_epilogue.cl"

#define HIDDEN_ACTIVATED(x) ACTIVATION(HIDDEN_ACT, x)
#if HARD
#define GATE_ACTIVATED(x) (WITHIN((x) + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f))
#else
#define GATE_ACTIVATED(x) ACTIVATION(GATE_ACT, x)
#endif
#if PRODUCTS == 2
#define FIRST_PARAM __global const FIRST_T *first,
#else
#define FIRST_PARAM
#endif
#if FIRST_BIAS
#define FIRST_BIAS_PARAM __global const FIRST_BIAS_T *first_bias,
#define FIRST_BIAS_AT(r) LOAD(FIRST_BIAS_T, first_bias, r)
#else
#define FIRST_BIAS_PARAM
#define FIRST_BIAS_AT(r) 0.0f
#endif
#if SECOND_BIAS
#define SECOND_BIAS_PARAM __global const SECOND_BIAS_T *second_bias,
#define SECOND_BIAS_AT(r) LOAD(SECOND_BIAS_T, second_bias, r)
#else
#define SECOND_BIAS_PARAM
#define SECOND_BIAS_AT(r) 0.0f
#endif

// to[r] = act(bias(r) + sum over k of weights[r, k] * from[k]) for r < rows; LANES items share a row.
#if LANES > 1
#define JOIN_LANES(sum)                                                     \
  parts[item] = sum;                                                        \
  barrier(CLK_LOCAL_MEM_FENCE);                                             \
  if (lane == 0) {                                                          \
    for (int other = 1; other < LANES; ++other) sum += parts[item + other]; \
  }                                                                         \
  barrier(CLK_LOCAL_MEM_FENCE);
#else
#define JOIN_LANES(sum)
#endif
#if WG > 1
#define ALL_HAVE_WRITTEN barrier(CLK_LOCAL_MEM_FENCE);
#else
#define ALL_HAVE_WRITTEN
#endif
#define MULTIPLY(T, weights, BIAS_OF, ACTIVATED, from, depth, to, rows)         \
  for (int r0 = 0; r0 < (rows); r0 += WG / LANES) {                             \
    const int r = r0 + item / LANES;                                            \
    float sum = 0.0f;                                                           \
    if (r < (rows)) {                                                           \
      VEC vector = (VEC)(0.0f);                                                 \
      int k = lane * VW;                                                        \
      for (; k + VW <= (depth); k += LANES * VW)                                \
        vector += LOAD_VEC(T, weights, r * (depth) + k) * FILL_VEC((from) + k); \
      sum = SUM_OF_VEC(vector);                                                 \
      for (k = (depth) / VW * VW + lane; k < (depth); k += LANES)               \
        sum += LOAD(T, weights, r * (depth) + k) * (from)[k];                   \
    }                                                                           \
    JOIN_LANES(sum)                                                             \
    if (lane == 0 && r < (rows)) {                                              \
      const float total = sum + BIAS_OF(r);                                     \
      (to)[r] = ACTIVATED(total);                                               \
    }                                                                           \
  }                                                                             \
  ALL_HAVE_WRITTEN

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void squeeze_excite_excite(
    __global const float *partial, FIRST_PARAM FIRST_BIAS_PARAM __global const SECOND_T *second,
    SECOND_BIAS_PARAM __global const IMAGE_T *image, RESIDUAL_PARAM RESULT_PARAM int chunks,
    int src_pixels, int src_channels, int hidden_size, int channels, int pixels, int tile) {
  LOCAL_ARRAY(float, mean, NUMBERS);
#if LANES > 1
  LOCAL_ARRAY(float, parts, WG);
#endif
  const int item = get_local_id(0);
  const int lane = item % LANES;
  const int i = get_group_id(1);
  for (int s = item; s < src_channels; s += WG) {
    float sum = 0.0f;
    for (int k = 0; k < chunks; ++k) sum += partial[(i * chunks + k) * src_channels + s];
    mean[s] = sum / src_pixels;
  }
  ALL_HAVE_WRITTEN
  __local float *hidden = mean + src_channels;
  __local float *gate = hidden + hidden_size;
#if PRODUCTS == 2
  MULTIPLY(FIRST_T, first, FIRST_BIAS_AT, HIDDEN_ACTIVATED, mean, src_channels, hidden, hidden_size)
  MULTIPLY(SECOND_T, second, SECOND_BIAS_AT, GATE_ACTIVATED, hidden, hidden_size, gate, channels)
#else
  MULTIPLY(SECOND_T, second, SECOND_BIAS_AT, GATE_ACTIVATED, mean, src_channels, gate, channels)
#endif
  const int first_pixel = get_group_id(0) * tile;
  const int last = min(first_pixel + tile, pixels);
  const int vectors = channels / VW;
  // A work-item's next vector, without a division for each.
  int p = first_pixel + item / vectors, v = item % vectors;
  while (p < last) {
    const int row = i * pixels + p, c = v * VW;
    const int at = RESULT_AT(row, c, channels);
    const VEC value = LOAD_VEC(IMAGE_T, image, row * channels + c) * FILL_VEC(gate + c);
    STORE_VEC(DST_T, dst, at, FINISH_VEC(value, at));
    v += WG % vectors;
    p += WG / vectors;
    if (v >= vectors) {
      v -= vectors;
      ++p;
    }
  }
}
