// pair_columns_nvidia.cl - images of few channels as halves, with four channels, so that two neighbouring pixels
//                          are one copy of 16 bytes for kernels/tensor_gemm/tensor_gemm_nvidia.cl
//
// Shapes    src: [lines, width, channels], channels <= 4, images or filters; dst: [lines, pairs, 2, 4], zero in
//           the first `skipped` columns and past the last channel or column
// Launch    one work-item per pair: global = (lines * pairs, rounded up), local = (64)
// Macros    SRC_T  float|half  element type of src
// Numerics  float to half rounds to nearest even; numbers beyond 65504 become infinite, of which zeros around
//           a filter make NaN in results that are infinite or beside these
#include "common/types.cl"

__kernel void conv2d_pair_columns(__global const SRC_T *src, __global half *dst, int elements,
                                  int width, int channels, int skipped, int pairs) {
  const int i = get_global_id(0);
  if (i >= elements) return;
  const int line = i / pairs, column = (i - line * pairs) * 2 - skipped;
  const int at = (line * width + column) * channels;
  float x[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    x[j] = 0;
    if (j % 4 < channels && column + j / 4 >= 0 && column + j / 4 < width)
      x[j] = LOAD(SRC_T, src, at + j / 4 * channels + j % 4);
  }
  STORE8_ALIGNED(half, dst, i * 8, (float8)(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]));
}
