// dequantize.cl - dst[i] = scale * (src[i] - zero_point), per tensor or per channel
//
// Shapes    src, dst: the same, contiguous; scales, zero_points: [axis_size], along an axis whose
//           neighbours lie `inner` elements apart; axis_size 1: one for all
// Launch    one work-item per element: global = count, local any
// Macros    SRC_T  float|half|char|uchar|short  element type of src; floats have scale 1, zero point 0
//           DST_T  float|half                   element type of dst
//           PER_AXIS  0|1  0: axis_size is 1, so no division is needed
// Numerics  the difference is exact, the product is rounded once
#include "common/types.cl"

__kernel void dequantize_elementwise(__global const SRC_T *src, __global DST_T *dst, int count,
                                     __global const float *scales, __global const int *zero_points,
                                     int axis_size, int inner) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int channel = PER_AXIS ? i / inner % axis_size : 0;
  const float steps = (float)(LOAD(SRC_T, src, i) - zero_points[channel]);
  STORE(DST_T, dst, i, scales[channel] * steps);
}
