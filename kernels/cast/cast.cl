// cast.cl - dst[i] = src[i] as an element of another type
//
// Shapes    src, dst: the same, contiguous
// Launch    one work-item per element: global = count, local any
// Macros    SRC_T       float|half|int|long|short|char|uchar  element type of src
//           DST_T       float|half|int|long|short|char|uchar  element type of dst
//           FROM_FLOAT  0|1                                   1: SRC_T is float or half
//           TO_FLOAT    0|1                                   1: DST_T is float or half
//           TO_BOOL     0|1                                   1: dst is bool, 1 if src is not zero
// Numerics  floats are truncated towards zero and clamped to the range of an integer type;
//           wider integers lose their upper bits; integers round to the nearest float
#include "common/types.cl"

#define CONVERT_CUT(T) CLGPU_CAT(CLGPU_CAT(convert_, T), _sat_rtz)

__kernel void cast_elementwise(__global const SRC_T *src, __global DST_T *dst, int count) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const ARITH(SRC_T) value = LOAD(SRC_T, src, i);
#if TO_BOOL
  STORE(DST_T, dst, i, value != 0);
#elif TO_FLOAT
  STORE(DST_T, dst, i, (float)value);
#elif FROM_FLOAT
  STORE(DST_T, dst, i, CONVERT_CUT(DST_T)(value));
#else
  STORE(DST_T, dst, i, (DST_T)value);
#endif
}
