// bilinear.cl - dst[b, y, x, c] = the four neighbours of (y', x') in src, weighted by nearness
//
// y' = (y + shift) * scale_h - shift and likewise x'; neighbours outside src are moved to its edge.
//
// Shapes    src: [n, src_h, src_w, c], dst: [n, dst_h, dst_w, c], contiguous: the rows from src_row
//           on of a taller image, and those from dst_row on of its result
// Launch    one work-item per VEC channels of a pixel of dst: global = (n rounded up, dst_h, n of src),
//           any local
// Macros    SRC_T  float|half    element type of src
//           DST_T  float|half    element type of dst
//           VEC    1|4           channels of a work-item; divides c, and where slices begin
//           and those of common/result.cl
// Numerics  places, weights and sums in float
#include "common/result.cl"
#include "common/types.cl"
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif
#ifndef VEC
#error "VEC is required (1 or 4)"
#endif

// Contraction would move places that lie on a pixel off it.
#pragma OPENCL FP_CONTRACT OFF

#if VEC == 4
#define VALUE float4
#define LOAD_VEC(i) LOAD4_ALIGNED(SRC_T, src, (i) * 4)
#define STORE_VEC(i, v) STORE4_ALIGNED(DST_T, dst, i, v)
#else
#define VALUE float
#define LOAD_VEC(i) LOAD(SRC_T, src, i)
#define STORE_VEC(i, v) STORE(DST_T, dst, i, v)
#endif

// A row has n results of VEC channels; channels counts VECs; shift is 0.5 for half-pixel centres, else 0.
__kernel void resize_bilinear(__global const SRC_T *src, RESULT_PARAM int n, int channels,
                              int dst_h, int dst_w, int src_h, int src_w, int dst_row, int src_row,
                              float scale_h, float scale_w, float shift) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  const int dst_x = i / channels;
  const int dst_y = get_global_id(1);
  const int b = get_global_id(2);

  const float y = (dst_y + dst_row + shift) * scale_h - shift - src_row;
  const float x = (dst_x + shift) * scale_w - shift;
  const int y0 = clamp((int)floor(y), 0, src_h - 1), y1 = clamp((int)ceil(y), 0, src_h - 1);
  const int x0 = clamp((int)floor(x), 0, src_w - 1), x1 = clamp((int)ceil(x), 0, src_w - 1);
  const float down = y - y0, right = x - x0;

  const int row0 = (b * src_h + y0) * src_w, row1 = (b * src_h + y1) * src_w;
  const VALUE v00 = LOAD_VEC((row0 + x0) * channels + c);
  const VALUE v01 = LOAD_VEC((row0 + x1) * channels + c);
  const VALUE v10 = LOAD_VEC((row1 + x0) * channels + c);
  const VALUE v11 = LOAD_VEC((row1 + x1) * channels + c);
  const VALUE v = v00 * (1.0f - down) * (1.0f - right) + v10 * down * (1.0f - right) +
                  v01 * (1.0f - down) * right + v11 * down * right;
  STORE_VEC(RESULT_AT((b * dst_h + dst_y) * dst_w + dst_x, c * VEC, channels * VEC), v);
}
