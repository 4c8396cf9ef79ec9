// dequantize.cl - dst[i] = scale * (src[i] - zero_point)
//
// Shapes    src, dst: the same, contiguous
// Launch    one work-item per element: global = count, local any
// Macros    SRC_T  float|half|char|uchar|short  element type of src; floats have scale 1, zero point 0
//           DST_T  float|half                   element type of dst
// Numerics  the difference is exact, the product is rounded once
#include "common/types.cl"
#ifndef SRC_T
#error "SRC_T is required (float, half, char, uchar or short)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif

__kernel void dequantize_elementwise(__global const SRC_T *src, __global DST_T *dst, int count,
                                     float scale, int zero_point) {
  const int i = get_global_id(0);
  if (i >= count) return;
  STORE(DST_T, dst, i, scale * (float)(LOAD(SRC_T, src, i) - zero_point));
}
