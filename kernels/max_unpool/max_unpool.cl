// max_unpool.cl - dst[n, y, x, c] = the value of src whose index points at (y, x), else 0
//
// Shapes    src, indices: [batches, src_h, src_w, channels];
//           dst: [batches, src_h * filter_h, src_w * filter_w, channels]
// Launch    one work-item per element of dst: global = elements, local any. It searches the
//           windows that cover it, last one first: where windows overlap, the last one wins
// Macros    SRC_T    float|half  element type of src
//           INDEX_T  float|half  element type of indices
//           DST_T    float|half  element type of dst
// Numerics  indices are truncated to integers row * filter_w + column within the window; those
//           outside of the window are ignored
#include "common/types.cl"

__kernel void max_unpool_gather(__global const SRC_T *src, __global const INDEX_T *indices,
                                __global DST_T *dst, int batches, int src_h, int src_w, int dst_h,
                                int dst_w, int channels, int filter_h, int filter_w, int stride_h,
                                int stride_w, int pad_h, int pad_w) {
  const int item = get_global_id(0);
  if (item >= batches * dst_h * dst_w * channels) return;
  const int pixel = item / channels;
  const int c = item - pixel * channels;
  const int line = pixel / dst_w;
  const int n = line / dst_h;
  const int y = line - n * dst_h + pad_h;
  const int x = pixel - line * dst_w + pad_w;

  // Window sy covers rows sy * stride_h .. sy * stride_h + filter_h - 1, counted from pad_h above dst.
  float value = 0.0f;
  bool found = false;
  for (int sy = min(y / stride_h, src_h - 1); !found && sy >= 0; --sy) {
    const int dy = y - sy * stride_h;
    if (dy >= filter_h) break;
    for (int sx = min(x / stride_w, src_w - 1); !found && sx >= 0; --sx) {
      const int dx = x - sx * stride_w;
      if (dx >= filter_w) break;
      const int at = ((n * src_h + sy) * src_w + sx) * channels + c;
      if ((int)LOAD(INDEX_T, indices, at) == dy * filter_w + dx) {
        value = LOAD(SRC_T, src, at);
        found = true;
      }
    }
  }
  STORE(DST_T, dst, item, value);
}
