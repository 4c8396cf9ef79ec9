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
#include "common/types.cl"

// OpenCL allows an error of 2.5 units in the last place for a / b, enough to miss a tie between two steps.
// One Newton step on the exact remainder gives the correctly rounded quotient.
static inline float quantize_divide(float a, float b) {
  const float q = a / b;
  return isfinite(q) ? q + fma(-q, b, a) / b : q;
}

#define CLAMP_TO(T) CLGPU_CAT(CLGPU_CAT(convert_, T), _sat)

__kernel void quantize_elementwise(__global const SRC_T *src, RESULT_PARAM int count,
                                   __global const float *scales, __global const int *zero_points,
                                   int axis_size, int inner) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int channel = PER_AXIS ? i / inner % axis_size : 0;
  const float quotient = round(quantize_divide(LOAD(SRC_T, src, i), scales[channel]));
  // Far outside of the range of every DST_T, but int does not overflow when zero_point is added.
  const int steps = (int)clamp(quotient, -1048576.0f, 1048576.0f);
  dst[RESULT_OF(i)] = CLAMP_TO(DST_T)(steps + zero_points[channel]);
}
