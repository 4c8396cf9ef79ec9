// update.cl - dst = old, with pairs of numbers turned by angles, as of rotate.cl, in place of a part from the
//             position start on
//
// Shapes    old, dst: [d0, ..., d4, 2 * half], src: [u0, ..., u4, 2 * half], start: [rank], contiguous;
//           each u is at most its d; shapes have ones in front of their rank axes; cosine, sine: as of
//           rotate.cl, strides c0, ..., c4 along the axes of src
// Launch    select: one work-item per VW pairs of dst; write: one per VW pairs of src; global =
//           (pairs / VW rounded up, 1, 1), any local
// Macros    FULL     0|1         1: both numbers of a pair have a cosine and a sine of their own
//           VW       1|4         pairs of a work-item; 4 divides half, c0, ..., c4 if it is 4
//           OLD_T    float|half  element type of old
//           SRC_T    float|half  element type of src
//           COS_T    float|half  element type of cosine
//           SIN_T    float|half  element type of sine
//           DST_T    float|half  element type of dst
//           INDEX_T  int|long    element type of start
//           and those of common/vector.cl (SUM_T float)
// Numerics  float; start is moved so that the part lies inside of dst
#include "common/index.cl"
#include "common/update.cl"
#include "common/vector.cl"

// Writes the pairs of src whose first number is element `low` on to those of dst at `to`.
#define TURN(to, low, at)                                                                         \
  do {                                                                                            \
    const int behind = FULL ? (at) + half_ : (at);                                                \
    const VEC x = LOAD_VEC_ALIGNED(SRC_T, src, low),                                              \
              y = LOAD_VEC_ALIGNED(SRC_T, src, (low) + half_);                                    \
    STORE_VEC_ALIGNED(                                                                            \
        DST_T, dst, to,                                                                           \
        x * LOAD_VEC_ALIGNED(COS_T, cosine, at) - y * LOAD_VEC_ALIGNED(SIN_T, sine, at));         \
    STORE_VEC_ALIGNED(                                                                            \
        DST_T, dst, (to) + half_,                                                                 \
        y * LOAD_VEC_ALIGNED(COS_T, cosine, behind) + x * LOAD_VEC_ALIGNED(SIN_T, sine, behind)); \
  } while (0)

__kernel void rotate_select(__global const OLD_T *old, __global const SRC_T *src,
                            __global const INDEX_T *start, __global const COS_T *cosine,
                            __global const SIN_T *sine, __global DST_T *dst, int pairs, int rank,
                            int half_, int d0, int d1, int d2, int d3, int d4, int u0, int u1,
                            int u2, int u3, int u4, int c0, int c1, int c2, int c3, int c4) {
  const int i = get_global_id(0) * VW;
  if (i >= pairs) return;
  UNRAVEL6(i, d1, d2, d3, d4, half_);
  const int p0 = place_in_update(start, rank, 0, i0, d0, u0);
  const int p1 = place_in_update(start, rank, 1, i1, d1, u1);
  const int p2 = place_in_update(start, rank, 2, i2, d2, u2);
  const int p3 = place_in_update(start, rank, 3, i3, d3, u3);
  const int p4 = place_in_update(start, rank, 4, i4, d4, u4);
  const bool inside = p0 >= 0 && p0 < u0 && p1 >= 0 && p1 < u1 && p2 >= 0 && p2 < u2 && p3 >= 0 &&
                      p3 < u3 && p4 >= 0 && p4 < u4;
  const int to = (i - i5) * 2 + i5;
  if (inside) {
    const int low = ((((p0 * u1 + p1) * u2 + p2) * u3 + p3) * u4 + p4) * (2 * half_) + i5;
    TURN(to, low, p0 * c0 + p1 * c1 + p2 * c2 + p3 * c3 + p4 * c4 + i5);
  } else {
    STORE_VEC_ALIGNED(DST_T, dst, to, LOAD_VEC_ALIGNED(OLD_T, old, to));
    STORE_VEC_ALIGNED(DST_T, dst, to + half_, LOAD_VEC_ALIGNED(OLD_T, old, to + half_));
  }
}

// dst has the elements of old already.
__kernel void rotate_write(__global const SRC_T *src, __global const INDEX_T *start,
                           __global const COS_T *cosine, __global const SIN_T *sine,
                           __global DST_T *dst, int pairs, int rank, int half_, int d0, int d1,
                           int d2, int d3, int d4, int u0, int u1, int u2, int u3, int u4, int c0,
                           int c1, int c2, int c3, int c4) {
  const int i = get_global_id(0) * VW;
  if (i >= pairs) return;
  UNRAVEL6(i, u1, u2, u3, u4, half_);
  const int p0 = i0 - place_in_update(start, rank, 0, 0, d0, u0);
  const int p1 = i1 - place_in_update(start, rank, 1, 0, d1, u1);
  const int p2 = i2 - place_in_update(start, rank, 2, 0, d2, u2);
  const int p3 = i3 - place_in_update(start, rank, 3, 0, d3, u3);
  const int p4 = i4 - place_in_update(start, rank, 4, 0, d4, u4);
  const int to = ((((p0 * d1 + p1) * d2 + p2) * d3 + p3) * d4 + p4) * (2 * half_) + i5;
  TURN(to, (i - i5) * 2 + i5, i0 * c0 + i1 * c1 + i2 * c2 + i3 * c3 + i4 * c4 + i5);
}
