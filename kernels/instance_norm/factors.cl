// factors.cl - mean and scale / sqrt(variance + epsilon) of each image and channel, from the moments
//              of its chunks
//
// Shapes    moments: [images, chunks, 2, channels], see moments.cl; scale: [channels]; factors:
//           [images, 2, channels]
// Launch    a work-group takes WX channels of an image: global = (ceil(channels / WX) * WX * WY, images,
//           1), local = (WX * WY, 1, 1)
// Macros    WX       power of two  channels of a work-group
//           WY       power of two  work-items that share a channel
//           SCALE    0|1           1: there is a parameter scale; 0: the scale is 1
//           SCALE_T  float|half    element type of scale (any if there is none)
// Numerics  float; sets are merged in pairs, work-item by work-item
#include "common/local.cl"
#include "common/types.cl"
#include "instance_norm/merge.cl"

#if SCALE
#define SCALE_PARAM __global const SCALE_T *scale,
#define SCALE_AT(c) LOAD(SCALE_T, scale, c)
#else
#define SCALE_PARAM
#define SCALE_AT(c) 1.0f
#endif

__kernel __attribute__((reqd_work_group_size(WX * WY, 1, 1))) void instance_norm_factors(
    __global const float *moments, SCALE_PARAM __global float *factors, int pixels, int channels,
    int chunk, int chunks, float epsilon) {
  LOCAL_ARRAY(float, counts, WX *WY);
  LOCAL_ARRAY(float, means, WX *WY);
  LOCAL_ARRAY(float, squares, WX *WY);
  const int item = get_local_id(0);
  const int row = item / WX;
  const int channel = get_group_id(0) * WX + item % WX;
  const int image = get_group_id(1);
  float count = 0.0f, mean = 0.0f, square = 0.0f;
  float first = 0.0f;  // means are added relative to it, because they may be large and similar
  if (channel < channels) {
    first = LOAD(float, moments, image * chunks * 2 * channels + channel);
    for (int i = row; i < chunks; i += WY) {
      const int at = (image * chunks + i) * 2 * channels + channel;
      const float size = (float)min(chunk, pixels - i * chunk);
      MERGE(float, count, mean, square, size, LOAD(float, moments, at) - first,
            LOAD(float, moments, at + channels));
    }
  }
  MERGE_ITEMS(float, WY, WX, row)
  if (row == 0 && channel < channels) {
    const int at = image * 2 * channels + channel;
    STORE(float, factors, at, first + means[item]);
    STORE(float, factors, at + channels,
          SCALE_AT(channel) / sqrt(squares[item] / counts[item] + epsilon));
  }
}
