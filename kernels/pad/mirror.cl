// mirror.cl - dst[i] = src[i - p], mirrored at the ends of src, for i of up to six axes
//
// Shapes    src: [m0, ..., m5], dst: [d0, ..., d5], contiguous; p: padding before each axis, in units
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T      uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T      uchar|short|int|int2|int4|float|half    unit of dst
//           AXES       2|4|6                                   axes of dst after neighbours are merged
//           SYMMETRIC  0|1    1: the outermost element is repeated (c b a | a b c); 0: it is not
//           and those of common/result.cl
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/axes.cl"
#include "common/move.cl"
#include "common/result.cl"

// The position in [0, size) that a position outside mirrors.
int pad_mirrored(int place, int size) {
  if (place < 0) return -place - SYMMETRIC;
  return place < size ? place : 2 * (size - 1) - place + SYMMETRIC;
}

// n units of dst; sizes d of dst and m of src, paddings p, all in units.
__kernel void pad_mirror(__global const SRC_T *src, RESULT_PARAM int n, int d1, int d2, int d3,
                         int d4, int d5, int m0, int m1, int m2, int m3, int m4, int m5, int p0,
                         int p1, int p2, int p3, int p4, int p5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  UNRAVEL(i, d1, d2, d3, d4, d5);
  int from = pad_mirrored(i0 - p0, m0);
  from = from * m1 + pad_mirrored(i1 - p1, m1);
  from = from * m2 + pad_mirrored(i2 - p2, m2);
  from = from * m3 + pad_mirrored(i3 - p3, m3);
  from = from * m4 + pad_mirrored(i4 - p4, m4);
  from = from * m5 + pad_mirrored(i5 - p5, m5);
  STORE(DST_T, dst, RESULT_OF(i), LOAD(SRC_T, src, from));
}
