// batch.cl - SPACE_TO_BATCH_ND and its inverse BATCH_TO_SPACE_ND
//
// With z = (y_in_block * block_w + x_in_block) * n + b, a batch of the blocked tensor:
//   space to batch: dst[z, y, x, c] = src[b, y * block_h + y_in_block - top, ..., c], fill outside src
//   batch to space: dst[b, y, x, c] = src[z, (y + top) / block_h, (x + left) / block_w, c]
// where y_in_block, x_in_block are the remainders of these divisions.
//
// Shapes    src: [src_n, src_h, src_w, c], dst: [dst_n, dst_h, dst_w, c], contiguous; tensors with
//           three axes have w = 1
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T   uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T   uchar|short|int|int2|int4|float|half    unit of dst
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/move.cl"

// n units of dst; channels in units; top and left are the leading paddings; fill: four bytes that a
// unit repeats (0 if elements are half or float).
__kernel void space_depth_space_to_batch(__global const SRC_T *src, __global DST_T *dst, int n,
                                         int channels, int dst_h, int dst_w, int src_n, int src_h,
                                         int src_w, int block_h, int block_w, int top, int left,
                                         int fill) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  const int dst_x = i / channels % dst_w;
  const int dst_y = i / channels / dst_w % dst_h;
  const int z = i / channels / dst_w / dst_h;
  const int block = z / src_n;
  const int y = dst_y * block_h + block / block_w - top;
  const int x = dst_x * block_w + block % block_w - left;
  if (y >= 0 && y < src_h && x >= 0 && x < src_w) {
    const int from = ((z % src_n * src_h + y) * src_w + x) * channels + c;
    STORE(DST_T, dst, i, LOAD(SRC_T, src, from));
  } else {
    STORE(DST_T, dst, i, (ARITH(DST_T))(fill));
  }
}

// n units of dst; channels in units; top and left are the leading crops.
__kernel void space_depth_batch_to_space(__global const SRC_T *src, __global DST_T *dst, int n,
                                         int channels, int dst_h, int dst_w, int dst_n, int src_h,
                                         int src_w, int block_h, int block_w, int top, int left) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  const int x = i / channels % dst_w + left;
  const int y = i / channels / dst_w % dst_h + top;
  const int b = i / channels / dst_w / dst_h;
  const int z = (y % block_h * block_w + x % block_w) * dst_n + b;
  const int from = ((z * src_h + y / block_h) * src_w + x / block_w) * channels + c;
  STORE(DST_T, dst, i, LOAD(SRC_T, src, from));
}
