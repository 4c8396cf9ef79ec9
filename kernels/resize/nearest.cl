// nearest.cl - dst[b, y, x, c] = src[b, y', x', c], y' = floor or round of (y + shift) * scale_h
//
// Shapes    src: [n, src_h, src_w, c], dst: [n, dst_h, dst_w, c], contiguous: rows of a taller image
//           from src_row on, and of its result from dst_row on
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T  uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T  uchar|short|int|int2|int4|float|half    unit of dst
//           ROUND  0|1    1: to the nearest position, halves up; 0: down
//           and those of common/result.cl
// Numerics  positions in float, each operation rounded separately, as in the reference; bits are
//           copied; float to half rounds to nearest even
#include "common/move.cl"
#include "common/result.cl"

int resize_place(int i, float shift, float scale, int first, int size) {
  const float place = (i + shift) * scale;
  return clamp((int)(ROUND ? round(place) : floor(place)) - first, 0, size - 1);
}

// n units of dst; channels in units; shift is 0.5 for half-pixel centres, else 0.
__kernel void resize_nearest(__global const SRC_T *src, RESULT_PARAM int n, int channels, int dst_h,
                             int dst_w, int src_h, int src_w, int dst_row, int src_row,
                             float scale_h, float scale_w, float shift) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  const int x = resize_place(i / channels % dst_w, shift, scale_w, 0, src_w);
  const int y =
      resize_place(i / channels / dst_w % dst_h + dst_row, shift, scale_h, src_row, src_h);
  const int b = i / channels / dst_w / dst_h;
  STORE(DST_T, dst, RESULT_AT(i / channels, c, channels),
        LOAD(SRC_T, src, ((b * src_h + y) * src_w + x) * channels + c));
}
