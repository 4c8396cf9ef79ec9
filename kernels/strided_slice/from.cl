// from.cl - dst[i0, ..., i5] = src[base + sum over k of sk * ik + fk * (first position on axis k)]
//
// Shapes    src, dst: up to 6 axes, contiguous, with ones in front; begins: [axes of the slice]
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T     uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T     uchar|short|int|int2|int4|float|half    unit of dst
//           INDEX_T   int|long                                element of begins
//           FROM_END  0|1                                     1: a negative begin counts from the end
// Numerics  bits are copied; float to half rounds to nearest even; a begin is moved so that the slice
//           lies inside of src
#include "common/index.cl"
#include "common/move.cl"

// The first position on an axis: begins[place], at most `last`; 0 where place is -1, because base
// has it. An axis with FROM_END has one position, so its size is last + 1.
static inline int first_position(__global const INDEX_T *begins, int place, int last) {
  if (place < 0) return 0;
  ARITH(INDEX_T) first = LOAD(INDEX_T, begins, place);
#if FROM_END
  if (first < 0) first += last + 1;
#endif
  return first < 0 ? 0 : first > last ? last : (int)first;
}

// n units of dst; base, d1..d5 (sizes of dst), s0..s5 (steps of the slice) and f0..f5 (strides of
// src) in units; p0..p5: places in begins; l0..l5: last positions at which the slice may begin.
__kernel void strided_slice_from(__global const SRC_T *src, __global const INDEX_T *begins,
                                 __global DST_T *dst, int n, int base, int d1, int d2, int d3,
                                 int d4, int d5, int s0, int s1, int s2, int s3, int s4, int s5,
                                 int f0, int f1, int f2, int f3, int f4, int f5, int p0, int p1,
                                 int p2, int p3, int p4, int p5, int l0, int l1, int l2, int l3,
                                 int l4, int l5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  UNRAVEL6(i, d1, d2, d3, d4, d5);
  const int from = base + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3 + i4 * s4 + i5 * s5 +
                   f0 * first_position(begins, p0, l0) + f1 * first_position(begins, p1, l1) +
                   f2 * first_position(begins, p2, l2) + f3 * first_position(begins, p3, l3) +
                   f4 * first_position(begins, p4, l4) + f5 * first_position(begins, p5, l5);
  STORE(DST_T, dst, i, LOAD(SRC_T, src, from));
}
