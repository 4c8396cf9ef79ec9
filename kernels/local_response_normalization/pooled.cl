// pooled.cl - the pooling of a local response normalisation: dst[n, y, x, c] = act(pool over the window of (y, x)
//                    of src[.., c] * (bias + alpha * sum_c)^-beta), sum_c = sum of src[.., j]^2 over |j - c| <= RADIUS
//
// Shapes    src: [batches, src_h, src_w, channels]; dst: [batches, dst_h, dst_w, channels], channels a
//           multiple of 4. Windows lie within src, with EDGES the first one begins pad_h rows and pad_w columns before it
// Launch    a work-item per four channels of a pixel: global = batches * dst_h * dst_w * channels / 4, any
//           local
// Macros    RADIUS  0..4   neighbours of a channel, on each side
//           ROOTS   0|1    1: beta is 0.75, by two roots
//           FILTER_H, FILTER_W, STRIDE_H, STRIDE_W  1..  size of a window, and from one to the next; with
//                          windows of one pixel and KIND 1 nothing is pooled
//           EDGES   0|1    1: windows may reach beyond src, which does not count
//           SRC_T, DST_T   float|half  element types
//           and those of common/pooling.cl (QUANTIZED 0) and common/result.cl
// Numerics  float; the normalised numbers are not rounded before they are pooled
#include "common/pooling.cl"
#include "common/result.cl"
#include "common/types.cl"

#define VALUE_T float4

// The factor of a channel.
#if ROOTS
#define POWER(x) (rsqrt(x) * sqrt(rsqrt(x)))
#else
#define POWER(x) pow(x, (float4)(-beta))
#endif

__kernel void local_response_normalization_pooled(__global const SRC_T *src,
                                                  RESULT_PARAM int batches, int src_h, int src_w,
                                                  int dst_h, int dst_w, int channels, int pad_h,
                                                  int pad_w, float bias, float alpha, float beta) {
  const int quads = channels / 4, item = get_global_id(0);
  if (item >= batches * dst_h * dst_w * quads) return;
  const int pixel = item / quads, c = item % quads * 4;
  const int y0 = pixel / dst_w % dst_h * STRIDE_H - pad_h, x0 = pixel % dst_w * STRIDE_W - pad_w;
  const int first = ((pixel / dst_w / dst_h * src_h + y0) * src_w + x0) * channels + c;
  float4 pool = (float4)(POOL_START);
  int count = 0;  // of pixels in the window
#pragma unroll
  for (int p = 0; p < FILTER_H * FILTER_W; ++p) {
    const int y = p / FILTER_W, x = p % FILTER_W;
    if (EDGES && ((uint)(y0 + y) >= (uint)src_h || (uint)(x0 + x) >= (uint)src_w)) continue;
    ++count;
    const int at = first + (y * src_w + x) * channels;
    const float4 own = LOAD4_ALIGNED(SRC_T, src, at);
    float4 before = 0.0f, after = 0.0f;
    if (RADIUS > 0 && c > 0) before = LOAD4_ALIGNED(SRC_T, src, at - 4);
    if (RADIUS > 0 && c + 4 < channels) after = LOAD4_ALIGNED(SRC_T, src, at + 4);
    before *= before;
    after *= after;
    const float4 mid = own * own;
    const float squares[12] = {before.s0, before.s1, before.s2, before.s3, mid.s0,   mid.s1,
                               mid.s2,    mid.s3,    after.s0,  after.s1,  after.s2, after.s3};
    float4 sum = 0.0f;
#pragma unroll
    for (int j = 4 - RADIUS; j <= 4 + RADIUS; ++j)
      sum += (float4)(squares[j], squares[j + 1], squares[j + 2], squares[j + 3]);
    const float4 scale = bias + alpha * sum;
    pool = POOL_ADD(pool, own * POWER(scale));
  }
  STORE4(DST_T, dst, RESULT_AT(pixel, c, channels), FINISH_POOL(pool, count));
}
