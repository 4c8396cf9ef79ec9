// strided_copy.cl - dst[i0, ..., i5] = src[base + s0 * i0 + ... + s5 * i5]
//
// Computes several families: parts of a tensor (s: step along an axis times src's stride), reversed axes (s is
// negative along them, base the last element), repeated axes (s is 0), permutations of axes (s: src's strides
// in the order of dst's axes) and, as permutations of six axes, blocks of space that become depth, and back.
//
// Shapes    src, dst: up to 6 axes, contiguous; s: distances in src along the axes of dst
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T   uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T   uchar|short|int|int2|int4|float|half    unit of dst
//           AXES    2|4|6                                   axes of dst after neighbours are merged
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/axes.cl"
#include "common/move.cl"

// n units of dst; base, d1..d5 (sizes of dst) and s0..s5 (strides in src) in units.
__kernel void strided_copy(__global const SRC_T *src, __global DST_T *dst, int n, int base, int d1,
                           int d2, int d3, int d4, int d5, int s0, int s1, int s2, int s3, int s4,
                           int s5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  UNRAVEL(i, d1, d2, d3, d4, d5);
  const int from = base + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3 + i4 * s4 + i5 * s5;
  STORE(DST_T, dst, i, LOAD(SRC_T, src, from));
}
