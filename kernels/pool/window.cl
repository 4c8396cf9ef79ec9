// window.cl - pooling: dst[n, y, x, c] = activation(pool of src[n, window of (y, x), c])
//
// Shapes    src: [batches, src_h, src_w, channels]; dst: [batches, dst_h, dst_w, channels]
// Launch    one work-item per WIDTH channels of a pixel: global = batches * dst_h * dst_w *
//           channels / WIDTH, local any
// Macros    WIDTH  1|4|16    channels of a work-item; divides channels
//           SRC_T  float|half, or char|uchar|short with QUANTIZED  element type of src
//           DST_T  float|half, or char|uchar|short with QUANTIZED  element type of dst
//           and those of common/pooling.cl and common/result.cl
// Numerics  float arithmetic whatever the storage is, integers are exact; padding does not count
#include "common/pooling.cl"
#include "common/result.cl"
#include "common/types.cl"

#if WIDTH == 1
#define VALUE_T POOL_T
#define READ(p, i) LOAD(SRC_T, p, i)
#define WRITE(p, i, v) STORE(DST_T, p, i, v)
#else
#define VALUE_T CLGPU_CAT(POOL_T, WIDTH)
#define READ(p, i) CLGPU_CAT(LOAD, WIDTH)(SRC_T, p, i)
#define WRITE(p, i, v) CLGPU_CAT(STORE, WIDTH)(DST_T, p, i, v)
#endif

__kernel void pool_window(__global const SRC_T *src, RESULT_PARAM POOL_RANGE_PARAM int batches,
                          int src_h, int src_w, int dst_h, int dst_w, int channels, int filter_h,
                          int filter_w, int stride_h, int stride_w, int pad_h, int pad_w) {
  const int blocks = channels / WIDTH;
  const int item = get_global_id(0);
  if (item >= batches * dst_h * dst_w * blocks) return;
  const int pixel = item / blocks;
  const int c = (item - pixel * blocks) * WIDTH;
  const int row = pixel / dst_w;
  const int n = row / dst_h;
  const int top = (row - n * dst_h) * stride_h - pad_h;
  const int left = (pixel - row * dst_w) * stride_w - pad_w;

  const int y0 = max(top, 0), y1 = min(top + filter_h, src_h);
  const int x0 = max(left, 0), x1 = min(left + filter_w, src_w);
  VALUE_T sum = (VALUE_T)(POOL_START);
  for (int y = y0; y < y1; ++y) {
    int at = ((n * src_h + y) * src_w + x0) * channels + c;
    for (int x = x0; x < x1; ++x, at += channels) {
      const VALUE_T value = READ(src, at);
      sum = POOL_ADD(sum, value);
    }
  }
  const VALUE_T result = FINISH_POOL(sum, (y1 - y0) * (x1 - x0));
  WRITE(dst, RESULT_AT(pixel, c, channels), result);
}
