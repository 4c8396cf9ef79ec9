// dilate.cl - dst[i] = src[(i - low) / step] where that is an element of src, else a value, along each axis
//
// Shapes    src: [m0, ..., m5], dst: [d0, ..., d5], contiguous; low: positions of dst before element 0 of
//           src, below 0 if src is cut there; step: from one element of src to the next, at least 1;
//           value: [1]
// Launch    one work-item per element of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T    uchar|short|int|int2|float|half  element of src, see common/move.cl
//           DST_T    uchar|short|int|int2|float|half  element of dst
//           VALUE_T  uchar|short|int|int2|float|half  element of value
//           AXES     2|4|6                            axes of dst
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/axes.cl"
#include "common/move.cl"

// The position in src along an axis of size m; -1 where there is none.
int dilate_source(int place, int low, int step, int m) {
  const int offset = place - low;
  if (offset < 0 || offset % step != 0 || offset / step >= m) return -1;
  return offset / step;
}

// n elements of dst; sizes d of dst and m of src.
__kernel void dilate_gather(__global const SRC_T *src, __global const VALUE_T *value,
                            __global DST_T *dst, int n, int d1, int d2, int d3, int d4, int d5,
                            int m0, int m1, int m2, int m3, int m4, int m5, int low0, int low1,
                            int low2, int low3, int low4, int low5, int step0, int step1, int step2,
                            int step3, int step4, int step5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  UNRAVEL(i, d1, d2, d3, d4, d5);
  const int j0 = dilate_source(i0, low0, step0, m0), j1 = dilate_source(i1, low1, step1, m1);
  const int j2 = dilate_source(i2, low2, step2, m2), j3 = dilate_source(i3, low3, step3, m3);
  const int j4 = dilate_source(i4, low4, step4, m4), j5 = dilate_source(i5, low5, step5, m5);
  if (j0 >= 0 && j1 >= 0 && j2 >= 0 && j3 >= 0 && j4 >= 0 && j5 >= 0) {
    const int from = ((((j0 * m1 + j1) * m2 + j2) * m3 + j3) * m4 + j4) * m5 + j5;
    STORE(DST_T, dst, i, LOAD(SRC_T, src, from));
  } else {
    STORE(DST_T, dst, i, LOAD(VALUE_T, value, 0));
  }
}
