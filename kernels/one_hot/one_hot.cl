// one_hot.cl - dst[r, d, j] = indices[r, j] == d ? on : off
//
// Shapes    indices: [rows, inner], on, off: [1], dst: [rows, depth, inner], contiguous
// Launch    one work-item per element of dst: global = (n rounded up, 1, 1), any local
// Macros    INDEX_T  int|long                              element of indices
//           ON_T     uchar|short|int|int2|float|half       element of on, see common/move.cl
//           OFF_T    uchar|short|int|int2|float|half       element of off
//           DST_T    uchar|short|int|int2|float|half       element of dst
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/move.cl"

__kernel void one_hot_compare(__global const INDEX_T *indices, __global const ON_T *on,
                              __global const OFF_T *off, __global DST_T *dst, int n, int depth,
                              int inner) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int j = i % inner;
  const int d = i / inner % depth;
  const int r = i / inner / depth;
  if (LOAD(INDEX_T, indices, r * inner + j) == d) {
    STORE(DST_T, dst, i, LOAD(ON_T, on, 0));
  } else {
    STORE(DST_T, dst, i, LOAD(OFF_T, off, 0));
  }
}
