// matrix_diag.cl - matrices with a given diagonal: other elements are 0, or those of src
//
// Shapes    dst, src: [matrices, rows, cols]; diagonal: [matrices, min(rows, cols)]
// Launch    one work-item per element of dst: global = count, local any
// Macros    REPLACES         0|1  1: other elements are those of src
//           DIAGONAL_T       float|half|int|long|short|char|uchar  element type of diagonal
//           DST_T            float|half|int|long|short|char|uchar  element type of dst
//           SRC_T if REPLACES  float|half|int|long|short|char|uchar  element type of src
// Numerics  exact
#include "common/types.cl"

__kernel void matrix_diag_elementwise(
#if REPLACES
    __global const SRC_T *src,
#endif
    __global const DIAGONAL_T *diagonal, __global DST_T *dst, int count, int rows, int cols) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int line = i / cols, col = i - line * cols;
  const int matrix = line / rows, row = line - matrix * rows;
  if (row == col) {
    STORE(DST_T, dst, i, LOAD(DIAGONAL_T, diagonal, matrix * min(rows, cols) + row));
  } else {
#if REPLACES
    STORE(DST_T, dst, i, LOAD(SRC_T, src, i));
#else
    STORE(DST_T, dst, i, (ARITH(DST_T))0);
#endif
  }
}
