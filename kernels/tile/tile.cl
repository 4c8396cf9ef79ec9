// tile.cl - dst[i0, ..., i5] = src[i0 mod m0, ..., i5 mod m5]
//
// Shapes    src: [m0, ..., m5], dst: [d0, ..., d5], contiguous; each d is a multiple of its m
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T   uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T   uchar|short|int|int2|int4|float|half    unit of dst
//           AXES    2|4|6                                   axes of dst after neighbours are merged
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/axes.cl"
#include "common/move.cl"

__kernel void tile_gather(__global const SRC_T *src, __global DST_T *dst, int n, int d1, int d2,
                          int d3, int d4, int d5, int m0, int m1, int m2, int m3, int m4, int m5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  UNRAVEL(i, d1, d2, d3, d4, d5);
#if AXES == 2
  const int from = i4 % m4;
#elif AXES == 4
  const int from = ((i2 % m2) * m3 + i3 % m3) * m4 + i4 % m4;
#else
  const int from = ((((i0 % m0) * m1 + i1 % m1) * m2 + i2 % m2) * m3 + i3 % m3) * m4 + i4 % m4;
#endif
  STORE(DST_T, dst, i, LOAD(SRC_T, src, from * m5 + i5 % m5));
}
