// normalize.cl - dst[i, p, c] = act((src[i, p, c] - mean[i, c]) * factor[i, c] + bias[c] + residual)
//
// Shapes    src, dst: [images, pixels, channels], which may be one buffer; dst may be a slice; factors:
//           [images, 2, channels], mean and factor, see factors.cl; bias: [channels]
// Launch    a work-group takes ROWS * REPEAT pixels x LANES * VW channels: global =
//           (ceil(pixels / (ROWS * REPEAT)) * LANES * ROWS, ceil(channels / (LANES * VW)), images), local
//           = (LANES * ROWS, 1, 1)
// Macros    VW      1|4           channels of a work-item; channels is a multiple of it
//           LANES   power of two  work-items side by side along the channels
//           ROWS    power of two  pixels that a work-group reads at once
//           REPEAT  1..           pixels of a work-item
//           SRC_T, DST_T  float|half  element types
//           and those of common/epilogue.cl
// Numerics  float
#include "common/epilogue.cl"

#if VW == 1
#define VALUES float
#define LOAD_VALUES(T, p, i) LOAD(T, p, i)
#define STORE_VALUES(p, i, v) STORE(DST_T, p, i, v)
#define BIAS_VALUES(o) BIAS_AT(o)
#else
#define VALUES float4
#define LOAD_VALUES(T, p, i) LOAD4_ALIGNED(T, p, i)
#define STORE_VALUES(p, i, v) STORE4_ALIGNED(DST_T, p, i, v)
#define BIAS_VALUES(o) BIAS4_AT(o)
#endif
#if RESIDUAL
#define FINISH_VALUES(v, at) FINISH_WITH(v, LOAD_VALUES(RESIDUAL_T, residual, at))
#else
#define FINISH_VALUES(v, at) ACTIVATE(v)
#endif

__kernel __attribute__((reqd_work_group_size(LANES * ROWS, 1, 1))) void instance_norm_normalize(
    __global const SRC_T *src, __global const float *factors,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int channels) {
  const int item = get_local_id(0);
  const int channel = (get_group_id(1) * LANES + item % LANES) * VW;
  const int image = get_group_id(2);
  if (channel >= channels) return;
  const int factor_at = image * 2 * channels + channel;
  const VALUES mean = LOAD_VALUES(float, factors, factor_at);
  const VALUES factor = LOAD_VALUES(float, factors, factor_at + channels);
  const VALUES bias_values = BIAS_VALUES(channel);
  int pixel = get_group_id(0) * ROWS * REPEAT + item / LANES;
  for (int i = 0; i < REPEAT && pixel < pixels; ++i, pixel += ROWS) {
    const int row = image * pixels + pixel;
    const VALUES value =
        (LOAD_VALUES(SRC_T, src, row * channels + channel) - mean) * factor + bias_values;
    const int at = RESULT_AT(row, channel, channels);
    STORE_VALUES(dst, at, FINISH_VALUES(value, at));
  }
}
