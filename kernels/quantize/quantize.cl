// quantize.cl - dst[i] = round(src[i] / scale) + zero_point, clamped to the range of dst
//
// Shapes    src, dst: the same, contiguous; scales, zero_points: [axis_size], along an axis whose
//           neighbours lie `inner` elements apart; axis_size 1: one for all
// Launch    one work-item per element: global = count, local any
// Macros    SRC_T  float|half        element type of src
//           DST_T  char|uchar|short  element type of dst
//           PER_AXIS  0|1          0: axis_size is 1, so no division is needed
//           and those of common/result.cl
// Numerics  the quotient is correctly rounded, halves are rounded away from zero, as on the CPU
#include "common/result.cl"
#include "common/steps.cl"
#include "common/types.cl"

#define CLAMP_TO(T) CLGPU_CAT(CLGPU_CAT(convert_, T), _sat)

__kernel void quantize_elementwise(__global const SRC_T *src, RESULT_PARAM int count,
                                   __global const float *scales, __global const int *zero_points,
                                   int axis_size, int inner) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int channel = PER_AXIS ? i / inner % axis_size : 0;
  const int steps = steps_of(LOAD(SRC_T, src, i), scales[channel], zero_points[channel]);
  dst[RESULT_OF(i)] = CLAMP_TO(DST_T)(steps);
}
