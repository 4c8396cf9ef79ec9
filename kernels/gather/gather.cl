// gather.cl - dst[b, o, k, j] = src[b, o, indices[b, k], j]
//
// Shapes    src: [batches, outer, size, inner], indices: [batches, count],
//           dst: [batches, outer, count, inner], contiguous
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T    uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T    uchar|short|int|int2|int4|float|half    unit of dst
//           INDEX_T  short|int|long                          element of indices
// Numerics  bits are copied; float to half rounds to nearest even; an index outside [0, size)
//           yields zeros
#include "common/move.cl"

// n units of dst; outer, size and count in positions, inner in units.
__kernel void gather_rows(__global const SRC_T *src, __global const INDEX_T *indices,
                          __global DST_T *dst, int n, int outer, int size, int count, int inner) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int j = i % inner;
  const int k = i / inner % count;
  const int slab = i / inner / count;  // b * outer + o
  const ARITH(INDEX_T) index = LOAD(INDEX_T, indices, slab / outer * count + k);
  if (index >= 0 && index < size) {
    STORE(DST_T, dst, i, LOAD(SRC_T, src, (slab * size + (int)index) * inner + j));
  } else {
    STORE(DST_T, dst, i, (ARITH(DST_T))(0));
  }
}
