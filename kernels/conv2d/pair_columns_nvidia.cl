// pair_columns_nvidia.cl - images of few channels as halves or int8, with four channels, so that two neighbouring
//                          pixels are one copy of 16 or 8 bytes for kernels/tensor_gemm/tensor_gemm_nvidia.cl
//
// Shapes    src: [lines, width, channels], channels <= 4, images or filters; dst: [lines, pairs, 2, 4], `outside` in
//           the first `skipped` columns and past the last channel or column
// Launch    one work-item per pair: global = (lines * pairs, rounded up), local = (64)
// Macros    SRC_T  float|half|char  element type of src
//           DST_T  half|char        element type of dst, char with char
// Numerics  float to half rounds to nearest even; numbers beyond 65504 become infinite, of which zeros around
//           a filter make NaN in results that are infinite or beside these
#include "common/types.cl"

__kernel void conv2d_pair_columns(__global const SRC_T *src, __global DST_T *dst, int elements,
                                  int width, int channels, int skipped, int pairs, int outside) {
  const int i = get_global_id(0);
  if (i >= elements) return;
  const int line = i / pairs, column = (i - line * pairs) * 2 - skipped;
  const int at = (line * width + column) * channels;
  float x[8];  // has all int8
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    x[j] = outside;
    if (j % 4 < channels && column + j / 4 >= 0 && column + j / 4 < width)
      x[j] = LOAD(SRC_T, src, at + j / 4 * channels + j % 4);
  }
  STORE8_ALIGNED(DST_T, dst, i * 8, (float8)(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]));
}
