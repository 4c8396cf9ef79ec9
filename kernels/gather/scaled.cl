// scaled.cl - dst[k, j] = scale * table[indices[k], j]
//
// Shapes    table: [rows, inner], indices: [count], dst: [count, inner], contiguous; scales: one for
//           each `block` elements of the table
// Launch    one work-item per element of dst: global = (n rounded up, 1, 1), any local
// Macros    DST_T  float|half  element type of dst
//           PART   0|1|2  1: table is a part of a larger one, which begins at its row `first`; 2: elements
//                         of other rows are those of `before`
// Numerics  the product is rounded once; an index outside [0, rows) yields zeros
#include "common/types.cl"

// n elements of dst.
__kernel void gather_scaled(__global const char *table, __global const int *indices,
                            __global DST_T *dst, __global const float *scales, int n, int rows,
                            int inner, int block
#if PART
                            ,
                            int first
#endif
#if PART == 2
                            ,
                            __global const DST_T *before
#endif
) {
  const int i = get_global_id(0);
  if (i >= n) return;
  int row = indices[i / inner];
#if PART
  row -= first;
#endif
  float value = 0;
  if (row >= 0 && row < rows) {
    const int at = row * inner + i % inner;
    value = scales[at / block] * (float)table[at];
#if PART == 2
  } else {
    value = LOAD(DST_T, before, i);
#endif
  }
  STORE(DST_T, dst, i, value);
}
