// transform.cl - the first two numbers of each landmark, moved by a matrix m of 4 x 4:
//                  x' = m[0] * x + m[1] * y + m[3] * scale, y' = m[4] * x + m[5] * y + m[7] * scale
//
// Shapes    src, dst: [count, size]; matrix: [16]
// Launch    one work-item per landmark: global = count, local any
// Macros    SRC_T     float|half  element type of src
//           MATRIX_T  float|half  element type of matrix
//           DST_T     float|half  element type of dst
// Numerics  sums from left to right; further numbers of a landmark are copied
#include "common/types.cl"

__kernel void landmarks_transform(__global const SRC_T *src, __global const MATRIX_T *matrix,
                                  __global DST_T *dst, int count, int size, float scale) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const float x = LOAD(SRC_T, src, i * size), y = LOAD(SRC_T, src, i * size + 1);
  for (int row = 0; row < 2; ++row) {
    const float moved =
        LOAD(MATRIX_T, matrix, 4 * row) * x + LOAD(MATRIX_T, matrix, 4 * row + 1) * y;
    STORE(DST_T, dst, i * size + row, moved + LOAD(MATRIX_T, matrix, 4 * row + 3) * scale);
  }
  for (int k = 2; k < size; ++k) STORE(DST_T, dst, i * size + k, LOAD(SRC_T, src, i * size + k));
}
