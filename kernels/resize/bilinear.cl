// bilinear.cl - dst[b, y, x, c] = the four neighbours of (y', x') in src, weighted by nearness
//
// y' = (y + shift) * scale_h - shift and likewise x'; neighbours outside of src are clamped to its edge.
//
// Shapes    src: [n, src_h, src_w, c], dst: [n, dst_h, dst_w, c], contiguous: rows of a taller image
//           from src_row on, and of its result from dst_row on
// Launch    one work-item per VEC channels of a pixel of dst: global = (n rounded up, dst_h, n of src),
//           any local
// Macros    SRC_T  float|half|uchar|char|short  element type of src
//           DST_T  float|half|uchar|char|short  element type of dst
//           VEC    1|4           channels of a work-item; divides c and the start of slices
//           FIXED_POINT  0|1     1: elements are char or short
//           HALF_UP  0|1         1: 0.5 is added to results, which are stored as uchar
//           SUM_T  int|long      type of sums with FIXED_POINT: long for short
//           and those of common/result.cl
// Numerics  positions, weights and sums in float, uchar results truncated. With FIXED_POINT
//           positions in units of 1/1024 pixel, sums in integers, halves away from zero: both as in
//           TFLite's reference kernels
#include "common/result.cl"
#include "common/types.cl"

// Contraction would shift positions that are exactly on a pixel.
#pragma OPENCL FP_CONTRACT OFF

#if VEC == 4
#define VECTOR(T) CLGPU_CAT(T, 4)
#define LOAD_VEC(i) LOAD4_ALIGNED(SRC_T, src, (i) * 4)
#define STORE_VEC(i, v) STORE4_ALIGNED(DST_T, dst, i, v)
#else
#define VECTOR(T) T
#define LOAD_VEC(i) LOAD(SRC_T, src, i)
#define STORE_VEC(i, v) STORE(DST_T, dst, i, v)
#endif
#define CONVERT(T, v) CLGPU_CAT(convert_, VECTOR(T))(v)

#if FIXED_POINT
#define VALUE VECTOR(SUM_T)
#define LOAD_VALUE(i) CONVERT(SUM_T, LOAD_VEC(i))
#define ROUNDED(v) (((v) + ((v) > 0 ? (VALUE)(1 << 19) : -(VALUE)(1 << 19))) / (VALUE)(1 << 20))
#define PLACE_PARAMS int scale_h, int scale_w, int half_pixels, int whole_h
#else
#define VALUE VECTOR(float)
#define LOAD_VALUE(i) CONVERT(float, LOAD_VEC(i))
#if HALF_UP
#define ROUNDED(v) ((v) + 0.5f)
#else
#define ROUNDED(v) (v)
#endif
#define PLACE_PARAMS float scale_h, float scale_w, float shift
#endif

__kernel void resize_bilinear(__global const SRC_T *src, RESULT_PARAM int n, int channels,
                              int dst_h, int dst_w, int src_h, int src_w, int dst_row, int src_row,
                              PLACE_PARAMS) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  const int dst_x = i / channels;
  const int dst_y = get_global_id(1);
  const int b = get_global_id(2);

#if FIXED_POINT
  const int y = (dst_y + dst_row) * scale_h + half_pixels * (scale_h / 2 - 512);
  const int x = dst_x * scale_w + half_pixels * (scale_w / 2 - 512);
  const int top = max(y / 1024, 0), bottom = min((y + 1023) / 1024, whole_h - 1) - src_row;
  const int y0 = clamp(top - src_row, 0, src_h - 1), y1 = clamp(bottom, 0, src_h - 1);
  const int x0 = clamp(x / 1024, 0, src_w - 1), x1 = min((x + 1023) / 1024, src_w - 1);
  const SUM_T down = y - 1024 * top, right = x - 1024 * x0;
  const SUM_T one = 1024;
#else
  const float y = (dst_y + dst_row + shift) * scale_h - shift - src_row;
  const float x = (dst_x + shift) * scale_w - shift;
  const int y0 = clamp((int)floor(y), 0, src_h - 1), y1 = clamp((int)ceil(y), 0, src_h - 1);
  const int x0 = clamp((int)floor(x), 0, src_w - 1), x1 = clamp((int)ceil(x), 0, src_w - 1);
  const float down = y - y0, right = x - x0;
  const float one = 1.0f;
#endif

  const int row0 = (b * src_h + y0) * src_w, row1 = (b * src_h + y1) * src_w;
  const VALUE v00 = LOAD_VALUE((row0 + x0) * channels + c);
  const VALUE v01 = LOAD_VALUE((row0 + x1) * channels + c);
  const VALUE v10 = LOAD_VALUE((row1 + x0) * channels + c);
  const VALUE v11 = LOAD_VALUE((row1 + x1) * channels + c);
  const VALUE v = v00 * (one - down) * (one - right) + v10 * down * (one - right) +
                  v01 * (one - down) * right + v11 * down * right;
  STORE_VEC(RESULT_AT((b * dst_h + dst_y) * dst_w + dst_x, c * VEC, channels * VEC), ROUNDED(v));
}
