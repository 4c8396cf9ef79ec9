// tree.cl - pooling of large windows: dst[n, y, x, c] = activation(pool of src[n, window of (y, x), c])
//
// Shapes    src: [batches, src_h, src_w, channels]; dst: [batches, dst_h, dst_w, channels]
// Launch    one work-group per pixel and LANES channels: global = (channels rounded up to LANES,
//           batches * dst_h * dst_w * ROWS), local = (LANES, ROWS); the rows of a work-group share
//           the elements of the window
// Macros    LANES  power of two  channels of a work-group
//           ROWS   power of two  work-items per channel
//           SRC_T  float|half, or char|uchar|short with QUANTIZED  element type of src
//           DST_T  float|half, or char|uchar|short with QUANTIZED  element type of dst
//           and those of common/pooling.cl and common/result.cl
// Numerics  float arithmetic whatever the storage is, integers are exact; padding does not count
#include "common/local.cl"
#include "common/pooling.cl"
#include "common/result.cl"
#include "common/types.cl"

#define VALUE_T POOL_T

__kernel __attribute__((reqd_work_group_size(LANES, ROWS, 1))) void pool_tree(
    __global const SRC_T *src, RESULT_PARAM POOL_RANGE_PARAM int batches, int src_h, int src_w,
    int dst_h, int dst_w, int channels, int filter_h, int filter_w, int stride_h, int stride_w,
    int pad_h, int pad_w) {
  LOCAL_ARRAY(VALUE_T, partial, ROWS * LANES);
  const int lane = get_local_id(0);
  const int row = get_local_id(1);
  const int c = get_global_id(0);
  const int pixel = get_group_id(1);
  const int line = pixel / dst_w;
  const int n = line / dst_h;
  const int top = (line - n * dst_h) * stride_h - pad_h;
  const int left = (pixel - line * dst_w) * stride_w - pad_w;

  const int y0 = max(top, 0), y1 = min(top + filter_h, src_h);
  const int x0 = max(left, 0), x1 = min(left + filter_w, src_w);
  const int width = x1 - x0;
  const int count = (y1 - y0) * width;
  VALUE_T sum = POOL_START;
  if (c < channels) {
    for (int k = row; k < count; k += ROWS) {
      const int dy = k / width;
      const int at = ((n * src_h + y0 + dy) * src_w + x0 + k - dy * width) * channels + c;
      const VALUE_T value = LOAD(SRC_T, src, at);
      sum = POOL_ADD(sum, value);
    }
  }
  partial[row * LANES + lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = ROWS / 2; step > 0; step /= 2) {
    if (row < step) {
      sum = POOL_JOIN(sum, partial[(row + step) * LANES + lane]);
      partial[row * LANES + lane] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row == 0 && c < channels) {
    const VALUE_T result = FINISH_POOL(sum, count);
    STORE(DST_T, dst, RESULT_AT(pixel, c, channels), result);
  }
}
