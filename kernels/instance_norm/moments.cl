// moments.cl - mean and sum of squared deviations of each image, chunk of its pixels, and channel
//
// Shapes    src: [images, pixels, channels]; moments: [images, chunks, 2, channels], the mean of the
//           chunk's pixels and the sum of squared deviations from it
// Launch    a work-group takes `chunk` pixels x LANES * VW channels: global = (chunks * LANES * ROWS,
//           ceil(channels / (LANES * VW)), images), local = (LANES * ROWS, 1, 1)
// Macros    VW     1|4|8         channels of a work-item; channels is a multiple of it
//           LANES  power of two  work-items side by side along the channels
//           ROWS   power of two  pixels that a work-group reads at once
//           SRC_T  float|half    element type of src
// Numerics  float. A work-item sums deviations from the first of its n values, which bounds the
//           relative error of the sum of their squares by n * 2^-24, whatever their mean; partial results are
//           merged in pairs (Chan, Golub and LeVeque 1979)
#include "common/local.cl"
#include "common/types.cl"
#include "instance_norm/merge.cl"

#if VW == 1
#define VALUES float
#define LOAD_VALUES(p, i) LOAD(SRC_T, p, i)
#define STORE_VALUES(p, i, v) STORE(float, p, i, v)
#else
#define VALUES CLGPU_CAT(float, VW)
#define LOAD_VALUES(p, i) CLGPU_CAT(CLGPU_CAT(LOAD, VW), _ALIGNED)(SRC_T, p, i)
#define STORE_VALUES(p, i, v) CLGPU_CAT(CLGPU_CAT(STORE, VW), _ALIGNED)(float, p, i, v)
#endif
// Loads of a work-item in flight at a time.
#define UNROLLED 4
#define DEVIATION(i) (LOAD_VALUES(src, at + (i) * ROWS * channels) - first)

__kernel __attribute__((reqd_work_group_size(LANES * ROWS, 1, 1))) void instance_norm_moments(
    __global const SRC_T *src, __global float *moments, int pixels, int channels, int chunk) {
  LOCAL_ARRAY(float, counts, LANES *ROWS);
  LOCAL_ARRAY(VALUES, means, LANES * ROWS);
  LOCAL_ARRAY(VALUES, squares, LANES * ROWS);
  const int item = get_local_id(0);
  const int row = item / LANES;
  const int channel = (get_group_id(1) * LANES + item % LANES) * VW;
  const int image = get_group_id(2);
  const int begin = get_group_id(0) * chunk;
  const int end = min(begin + chunk, pixels);
  float count = 0.0f;
  VALUES mean = 0.0f, square = 0.0f;
  if (channel < channels && begin + row < end) {
    int at = (image * pixels + begin + row) * channels + channel;
    const VALUES first = LOAD_VALUES(src, at);
    VALUES sum = 0.0f;
    int pixel = begin + row;
    for (; pixel + (UNROLLED - 1) * ROWS < end;
         pixel += UNROLLED * ROWS, at += UNROLLED * ROWS * channels) {
      const VALUES d0 = DEVIATION(0), d1 = DEVIATION(1), d2 = DEVIATION(2), d3 = DEVIATION(3);
      sum += d0;
      square += d0 * d0;
      sum += d1;
      square += d1 * d1;
      sum += d2;
      square += d2 * d2;
      sum += d3;
      square += d3 * d3;
      count += (float)UNROLLED;
    }
    for (; pixel < end; pixel += ROWS, at += ROWS * channels) {
      const VALUES deviation = LOAD_VALUES(src, at) - first;
      sum += deviation;
      square += deviation * deviation;
      count += 1.0f;
    }
    mean = first + sum / count;
    square = fmax(square - sum * (sum / count), (VALUES)(0.0f));
  }
  MERGE_ITEMS(VALUES, ROWS, LANES, row)
  if (row == 0 && channel < channels) {
    const int at = (image * (int)get_num_groups(0) + (int)get_group_id(0)) * 2 * channels + channel;
    STORE_VALUES(moments, at, means[item]);
    STORE_VALUES(moments, at + channels, squares[item]);
  }
}
