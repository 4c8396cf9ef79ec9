// constant.cl - dst[i] = src[i - p] inside src, else the constant, for i of up to six axes
//
// Shapes    src: [m0, ..., m5], dst: [d0, ..., d5], contiguous; p: padding before each axis, in units;
//           value: [1]
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T      uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T      uchar|short|int|int2|int4|float|half    unit of dst
//           AXES       2|4|6                                   axes of dst after neighbours are merged
//           HAS_VALUE  0|1    1: there is a parameter value; 0: a parameter fill, four bytes that
//                             a unit repeats (0 if elements are half or float)
//           VALUE_T    uchar|short|int|int2|float|half         element of value, if there is one
//           and those of common/result.cl
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/axes.cl"
#include "common/move.cl"
#include "common/result.cl"

#if HAS_VALUE
#define FILL_PARAM
#define FILL LOAD(VALUE_T, value, 0)
#else
#define FILL_PARAM int fill,
#define FILL (ARITH(DST_T))(fill)
#endif

// n units of dst; sizes d of dst and m of src, paddings p, all in units.
__kernel void pad_constant(__global const SRC_T *src,
#if HAS_VALUE
                           __global const VALUE_T *value,
#endif
                           RESULT_PARAM int n, FILL_PARAM int d1, int d2, int d3, int d4, int d5,
                           int m0, int m1, int m2, int m3, int m4, int m5, int p0, int p1, int p2,
                           int p3, int p4, int p5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  UNRAVEL(i, d1, d2, d3, d4, d5);
  const int j0 = i0 - p0, j1 = i1 - p1, j2 = i2 - p2, j3 = i3 - p3, j4 = i4 - p4, j5 = i5 - p5;
  if (j0 >= 0 && j0 < m0 && j1 >= 0 && j1 < m1 && j2 >= 0 && j2 < m2 && j3 >= 0 && j3 < m3 &&
      j4 >= 0 && j4 < m4 && j5 >= 0 && j5 < m5) {
    const int from = ((((j0 * m1 + j1) * m2 + j2) * m3 + j3) * m4 + j4) * m5 + j5;
    STORE(DST_T, dst, RESULT_OF(i), LOAD(SRC_T, src, from));
  } else {
    STORE(DST_T, dst, RESULT_OF(i), FILL);
  }
}
