// bilinear.cl - dst[y, x, c] = the four neighbours of (y', x') in src, weighted by nearness, or 0 outside
//
//   x' = m[0] * x + m[1] * y + m[3], y' = m[4] * x + m[5] * y + m[7] for a matrix m of 4 x 4. CENTERS 1:
//   the same of the centres of the pixels, which are 0.5 further in both directions
//
// Shapes    src: [src_h, src_w, channels], matrix: [16], dst: [n / channels / dst_w, dst_w, channels];
//           n and channels count vectors of VEC
// Launch    one work-item per VEC channels of a pixel of dst: global = n, local any
// Macros    SRC_T     float|half  element type of src
//           MATRIX_T  float|half  element type of matrix
//           DST_T     float|half  element type of dst
//           VEC       1|4         channels of a work-item
//           CENTERS   0|1         as above
// Numerics  float; a position is outside where it is below 0 or above the last pixel
#include "common/types.cl"

// Contraction would move positions that are exactly on the border.
#pragma OPENCL FP_CONTRACT OFF

#if VEC == 4
#define VALUE float4
#define LOAD_VEC(i) LOAD4_ALIGNED(SRC_T, src, (i) * 4)
#define STORE_VEC(i, v) STORE4_ALIGNED(DST_T, dst, (i) * 4, v)
#else
#define VALUE float
#define LOAD_VEC(i) LOAD(SRC_T, src, i)
#define STORE_VEC(i, v) STORE(DST_T, dst, i, v)
#endif
#define NEIGHBOUR(y, x) \
  ((y) < src_h && (x) < src_w ? LOAD_VEC(((y) * src_w + (x)) * channels + c) : (VALUE)(0.0f))

static inline float place(__global const MATRIX_T *row, int x, int y) {
  const float along_x = LOAD(MATRIX_T, row, 0), along_y = LOAD(MATRIX_T, row, 1);
  float shift = LOAD(MATRIX_T, row, 3);
#if CENTERS
  shift += along_x * 0.5f + along_y * 0.5f - 0.5f;
#endif
  return along_x * x + along_y * y + shift;
}

__kernel void transform_tensor_bilinear(__global const SRC_T *src, __global const MATRIX_T *matrix,
                                        __global DST_T *dst, int n, int channels, int dst_w,
                                        int src_h, int src_w) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int pixel = i / channels, c = i - pixel * channels;
  const int dst_y = pixel / dst_w, dst_x = pixel - dst_y * dst_w;
  const float x = place(matrix, dst_x, dst_y), y = place(matrix + 4, dst_x, dst_y);
  VALUE value = 0.0f;
  if (x >= 0.0f && x <= src_w - 1 && y >= 0.0f && y <= src_h - 1) {
    const int x0 = (int)x, y0 = (int)y;
    const float right = x - x0, down = y - y0;
    const VALUE upper = (1.0f - right) * NEIGHBOUR(y0, x0) + right * NEIGHBOUR(y0, x0 + 1);
    const VALUE lower = (1.0f - right) * NEIGHBOUR(y0 + 1, x0) + right * NEIGHBOUR(y0 + 1, x0 + 1);
    value = (1.0f - down) * upper + down * lower;
  }
  STORE_VEC(i, value);
}
