// part.cl - dst[k, j] = src[indices[k] - first, j], where src is a part of a table
//
// Shapes    src: [size, inner], indices: [count], before and dst: [count, inner], contiguous
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T    uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T    uchar|short|int|int2|int4|float|half    unit of before and dst
//           INDEX_T  short|int|long                          element of indices
//           PART     1|2  what other rows give: 1: zeros; 2: units of `before`, which may be dst
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/move.cl"

// n units of dst; inner in units.
__kernel void gather_part(__global const SRC_T *src, __global const INDEX_T *indices,
                          __global DST_T *dst, int n, int size, int inner, int first
#if PART == 2
                          ,
                          __global const DST_T *before
#endif
) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const ARITH(INDEX_T) index = LOAD(INDEX_T, indices, i / inner) - first;
  if (index >= 0 && index < size) {
    STORE(DST_T, dst, i, LOAD(SRC_T, src, (int)index * inner + i % inner));
  } else {
#if PART == 2
    STORE(DST_T, dst, i, LOAD(DST_T, before, i));
#else
    STORE(DST_T, dst, i, (ARITH(DST_T))(0));
#endif
  }
}
