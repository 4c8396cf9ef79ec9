// max_pool_argmax.cl - dst[n, y, x, c] = activation(max of src over a window); indices: its position
//
// Shapes    src: [batches, src_h, src_w, channels]; dst, indices: [batches, dst_h, dst_w, channels]
// Launch    one work-item per element of dst: global = elements, local any
// Macros    SRC_T    float|half  element type of src
//           DST_T    float|half  element type of dst
//           INDEX_T  float|half  element type of indices
//           and those of common/activation.cl
// Numerics  an index is row * filter_w + column within the window (padding included) of the first
//           maximum, plus 0.1 so that truncation gives the index, as in MediaPipe
#include "common/activation.cl"
#include "common/types.cl"

__kernel void max_pool_argmax_naive(__global const SRC_T *src, __global DST_T *dst,
                                    __global INDEX_T *indices, int batches, int src_h, int src_w,
                                    int dst_h, int dst_w, int channels, int filter_h, int filter_w,
                                    int stride_h, int stride_w, int pad_h, int pad_w) {
  const int item = get_global_id(0);
  if (item >= batches * dst_h * dst_w * channels) return;
  const int pixel = item / channels;
  const int c = item - pixel * channels;
  const int line = pixel / dst_w;
  const int n = line / dst_h;
  const int top = (line - n * dst_h) * stride_h - pad_h;
  const int left = (pixel - line * dst_w) * stride_w - pad_w;

  float largest = -FLT_MAX;
  int index = 0;
  for (int y = max(top, 0); y < min(top + filter_h, src_h); ++y) {
    for (int x = max(left, 0); x < min(left + filter_w, src_w); ++x) {
      const float value = LOAD(SRC_T, src, ((n * src_h + y) * src_w + x) * channels + c);
      if (value > largest) {
        largest = value;
        index = (y - top) * filter_w + x - left;
      }
    }
  }
  STORE(DST_T, dst, item, ACTIVATE(largest));
  STORE(INDEX_T, indices, item, (float)index + 0.1f);
}
