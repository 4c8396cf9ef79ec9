// rotate.cl - pairs of numbers turned by angles: with h = half, for j < h
//               dst[r, j]     = src[r, j] * cosine[r, j] - src[r, j + h] * sine[r, j]
//               dst[r, j + h] = src[r, j + h] * cosine[r, j + s] + src[r, j] * sine[r, j + s]
//             where s = h with FULL, else 0
//
// Shapes    src, dst: [d0, ..., d4, 2 * half], which may be one buffer; cosine, sine: [.., half], with
//           FULL [.., 2 * half], strides c0, ..., c4 along the axes of src
// Launch    one work-item per VW pairs: global = (pairs / VW rounded up, 1, 1), any local
// Macros    FULL     0|1         1: both numbers of a pair have a cosine and a sine of their own
//           VW       1|4         pairs of a work-item; 4 divides half, c0, ..., c4 if it is 4
//           SRC_T    float|half  element type of src
//           COS_T    float|half  element type of cosine
//           SIN_T    float|half  element type of sine
//           DST_T    float|half  element type of dst
//           and those of common/vector.cl (SUM_T float)
// Numerics  float
#include "common/index.cl"
#include "common/vector.cl"

__kernel void rotate_pairs(__global const SRC_T *src, __global const COS_T *cosine,
                           __global const SIN_T *sine, __global DST_T *dst, int pairs, int half_,
                           int d1, int d2, int d3, int d4, int c0, int c1, int c2, int c3, int c4) {
  const int i = get_global_id(0) * VW;
  if (i >= pairs) return;
  UNRAVEL6(i, d1, d2, d3, d4, half_);
  const int low = (i - i5) * 2 + i5, high = low + half_;
  const int at = i0 * c0 + i1 * c1 + i2 * c2 + i3 * c3 + i4 * c4 + i5;
  const int behind = FULL ? at + half_ : at;
  const VEC x = LOAD_VEC_ALIGNED(SRC_T, src, low), y = LOAD_VEC_ALIGNED(SRC_T, src, high);
  STORE_VEC_ALIGNED(
      DST_T, dst, low,
      x * LOAD_VEC_ALIGNED(COS_T, cosine, at) - y * LOAD_VEC_ALIGNED(SIN_T, sine, at));
  STORE_VEC_ALIGNED(
      DST_T, dst, high,
      y * LOAD_VEC_ALIGNED(COS_T, cosine, behind) + x * LOAD_VEC_ALIGNED(SIN_T, sine, behind));
}
