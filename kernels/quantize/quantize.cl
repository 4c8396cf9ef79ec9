// quantize.cl - dst[i] = round(src[i] / scale) + zero_point, clamped to the range of dst
//
// Shapes    src, dst: the same, contiguous
// Launch    one work-item per element: global = count, local any
// Macros    SRC_T  float|half        element type of src
//           DST_T  char|uchar|short  element type of dst
// Numerics  the quotient is correctly rounded and halves go away from zero, as on the CPU
#include "common/types.cl"
#include "common/divide.cl"
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (char, uchar or short)"
#endif

#define CLAMP_TO(T) CLGPU_CAT(CLGPU_CAT(convert_, T), _sat)

__kernel void quantize_elementwise(__global const SRC_T *src, __global DST_T *dst, int count,
                                   float scale, int zero_point) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const float quotient = round(divide_exactly(LOAD(SRC_T, src, i), scale));
  // Far outside of every range here, and far from the limits of int once zero_point is added.
  const int steps = (int)clamp(quotient, -1048576.0f, 1048576.0f);
  dst[i] = CLAMP_TO(DST_T)(steps + zero_point);
}
