// pack.cl - weights of all gates side by side, transposed, and their vectors as floats
//
//   recurrent_pack    dst[k * pitch + first + j] = src[j * depth + k]
//   recurrent_vector  dst[first + j] = src[j] * scale
//
// Shapes    recurrent_pack: src [rows, depth], dst [depth, pitch]; recurrent_vector: src [rows]
// Launch    global = (rows * depth rounded up, 1, 1) or (rows rounded up, 1, 1), any local
// Macros    SRC_T  float|half|char|short|int  element type of src
//           DST_T  float|half|char|int        element type of dst
// Numerics  exact, but for the product with the scale
#include "common/types.cl"

__kernel void recurrent_pack(__global const SRC_T *src, __global DST_T *dst, int rows, int depth,
                             int pitch, int first) {
  const int i = get_global_id(0);
  if (i >= rows * depth) return;
  const int j = i % rows, k = i / rows;
  STORE(DST_T, dst, k * pitch + first + j, LOAD(SRC_T, src, j * depth + k));
}

__kernel void recurrent_vector(__global const SRC_T *src, __global DST_T *dst, int rows, int first,
                               ARITH(DST_T) scale) {
  const int j = get_global_id(0);
  if (j >= rows) return;
  STORE(DST_T, dst, first + j, LOAD(SRC_T, src, j) * scale);
}
