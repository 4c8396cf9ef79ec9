// complex_parts.cl - dst[i] = the real part, the imaginary part or the absolute value of src[i]
//
// Shapes    src: [count] complex numbers, each two floats; dst: [count]
// Launch    one work-item per element: global = count, local any
// Macros    PART   0..2        0 real part, 1 imaginary part, 2 absolute value
//           DST_T  float|half  element type of dst
// Numerics  parts are exact; absolute values are those of hypot(), which does not overflow
#include "common/types.cl"

__kernel void complex_parts_elementwise(__global const float2 *src, __global DST_T *dst,
                                        int count) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const float2 value = src[i];
#if PART == 0
  STORE(DST_T, dst, i, value.x);
#elif PART == 1
  STORE(DST_T, dst, i, value.y);
#else
  STORE(DST_T, dst, i, hypot(value.x, value.y));
#endif
}
