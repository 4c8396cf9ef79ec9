// gather_nd.cl - dst[r, j] = src[indices[r, 0], ..., indices[r, depth - 1], j]
//
// Shapes    src: [m0, ..., m(depth - 1), inner], indices: [rows, depth], dst: [rows, inner],
//           contiguous; depth is 0..6
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T    uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T    uchar|short|int|int2|int4|float|half    unit of dst
//           INDEX_T  short|int|long                          element of indices
// Numerics  bits are copied; float to half rounds to nearest even; a row of indices outside of
//           src yields zeros
#include "common/move.cl"

// n units of dst; inner in units; sizes m0..m5 of src's axes, those from depth on are not read.
__kernel void gather_nd_rows(__global const SRC_T *src, __global const INDEX_T *indices,
                             __global DST_T *dst, int n, int inner, int depth, int m0, int m1,
                             int m2, int m3, int m4, int m5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  indices += i / inner * depth;
  int row = 0;
  bool inside = true;
  for (int k = 0; k < depth; ++k) {
    const ARITH(INDEX_T) index = LOAD(INDEX_T, indices, k);
    const int size = k == 0 ? m0 : k == 1 ? m1 : k == 2 ? m2 : k == 3 ? m3 : k == 4 ? m4 : m5;
    inside = inside && index >= 0 && index < size;
    row = row * size + (inside ? (int)index : 0);
  }
  if (inside) {
    STORE(DST_T, dst, i, LOAD(SRC_T, src, row * inner + i % inner));
  } else {
    STORE(DST_T, dst, i, (ARITH(DST_T))(0));
  }
}
