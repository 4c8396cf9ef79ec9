// group_factors.cl - mean of each image and group of channels, and scale / sqrt(variance + epsilon)
//                    of its channels, from the moments of chunks
//
// Shapes    moments: [images, chunks, 2, channels], see moments.cl; scale: [channels]; factors:
//           [images, 2, channels]
// Launch    a work-group takes a group of `size` neighbouring channels of an image: global =
//           (channels / size * WG, images, 1), local = (WG, 1, 1)
// Macros    WG       power of two  work-items of a group
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

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void instance_norm_group_factors(
    __global const float *moments, SCALE_PARAM __global float *factors, int pixels, int channels,
    int size, int chunk, int chunks, float epsilon) {
  LOCAL_ARRAY(float, counts, WG);
  LOCAL_ARRAY(float, means, WG);
  LOCAL_ARRAY(float, squares, WG);
  const int item = get_local_id(0);
  const int channel = get_group_id(0) * size;
  const int image = get_group_id(1);
  float count = 0.0f, mean = 0.0f, square = 0.0f;
  // Means are added relative to one of them, because they may be large and similar.
  const float first = LOAD(float, moments, image * chunks * 2 * channels + channel);
  for (int i = item; i < chunks * size; i += WG) {
    const int at = (image * chunks + i / size) * 2 * channels + channel + i % size;
    const float elements = (float)min(chunk, pixels - i / size * chunk);
    MERGE(float, count, mean, square, elements, LOAD(float, moments, at) - first,
          LOAD(float, moments, at + channels));
  }
  MERGE_ITEMS(float, WG, 1, item)
  const float deviation = sqrt(squares[0] / counts[0] + epsilon);
  for (int c = channel + item; c < channel + size; c += WG) {
    const int at = image * 2 * channels + c;
    STORE(float, factors, at, first + means[0]);
    STORE(float, factors, at + channels, SCALE_AT(c) / deviation);
  }
}
