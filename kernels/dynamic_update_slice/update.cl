// update.cl - dst = src, with update in place of src from the position start on
//
// Shapes    src, dst: [d0, ..., d5], update: [u0, ..., u5], start: [rank], contiguous; each u is at
//           most its d; shapes have ones in front of their rank axes
// Launch    select: one work-item per unit of dst; write: one per unit of update; global = (n rounded
//           up, 1, 1), any local
// Macros    SRC_T     uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl; where
//                     only the part is written, that of dst
//           UPDATE_T  uchar|short|int|int2|int4|float|half    unit of update
//           DST_T     uchar|short|int|int2|int4|float|half    unit of dst
//           INDEX_T   int|long                                element of start
// Numerics  bits are copied; float to half rounds to nearest even; start is moved so that the
//           update lies inside of src
#include "common/index.cl"
#include "common/move.cl"
#include "common/update.cl"

// n units of dst; sizes of the last axis in units.
__kernel void dynamic_update_slice_select(__global const SRC_T *src,
                                          __global const UPDATE_T *update,
                                          __global const INDEX_T *start, __global DST_T *dst, int n,
                                          int rank, int d0, int d1, int d2, int d3, int d4, int d5,
                                          int u0, int u1, int u2, int u3, int u4, int u5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  UNRAVEL6(i, d1, d2, d3, d4, d5);
  const int p0 = place_in_update(start, rank, 0, i0, d0, u0);
  const int p1 = place_in_update(start, rank, 1, i1, d1, u1);
  const int p2 = place_in_update(start, rank, 2, i2, d2, u2);
  const int p3 = place_in_update(start, rank, 3, i3, d3, u3);
  const int p4 = place_in_update(start, rank, 4, i4, d4, u4);
  const int p5 = place_in_update(start, rank, 5, i5, d5, u5);
  const bool inside = p0 >= 0 && p0 < u0 && p1 >= 0 && p1 < u1 && p2 >= 0 && p2 < u2 && p3 >= 0 &&
                      p3 < u3 && p4 >= 0 && p4 < u4 && p5 >= 0 && p5 < u5;
  if (inside) {
    STORE(DST_T, dst, i,
          LOAD(UPDATE_T, update, ((((p0 * u1 + p1) * u2 + p2) * u3 + p3) * u4 + p4) * u5 + p5));
  } else {
    STORE(DST_T, dst, i, LOAD(SRC_T, src, i));
  }
}

// dst has the elements of src already: n units of update.
__kernel void dynamic_update_slice_write(__global const UPDATE_T *update,
                                         __global const INDEX_T *start, __global DST_T *dst, int n,
                                         int rank, int d0, int d1, int d2, int d3, int d4, int d5,
                                         int u0, int u1, int u2, int u3, int u4, int u5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  UNRAVEL6(i, u1, u2, u3, u4, u5);
  const int p0 = i0 - place_in_update(start, rank, 0, 0, d0, u0);
  const int p1 = i1 - place_in_update(start, rank, 1, 0, d1, u1);
  const int p2 = i2 - place_in_update(start, rank, 2, 0, d2, u2);
  const int p3 = i3 - place_in_update(start, rank, 3, 0, d3, u3);
  const int p4 = i4 - place_in_update(start, rank, 4, 0, d4, u4);
  const int p5 = i5 - place_in_update(start, rank, 5, 0, d5, u5);
  STORE(DST_T, dst, ((((p0 * d1 + p1) * d2 + p2) * d3 + p3) * d4 + p4) * d5 + p5,
        LOAD(UPDATE_T, update, i));
}
