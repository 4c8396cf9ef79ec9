// convolution.cl - the pooling of a 2-D convolution's results, of few products: dst[n, y, x, o] = pool over the window
//                  of (y, x) of act(sum + bias[o]); LANES work-items share each sum, as in conv2d/dot.cl
//
// Shapes    src: [n, in_h, in_w, in_c]; weights: OHWI, [out_c, depth], depth = filter_h * filter_w *
//           group_in; bias: [out_c]; dst: [pixels, out_c], pixels = n * dst_h * dst_w. Windows lie within
//           the convolution's results
// Launch    a work-group per pixel and WG_C output channels: global = (pixels * LANES, out_c rounded up to a
//           multiple of WG_C, 1), local = (LANES, WG_C, 1)
// Macros    LANES   8..64, a power of two  work-items that share a sum
//           WG_C    1..32   output channels of a work-group
//           POOL_H, POOL_W  1..4  size of a window; a work-item adds to the sums of all of its results
//           POOL_STRIDE_H, POOL_STRIDE_W  1..  from one window to the next
//           KV      1|4     elements read at once; divides group_in
//           SRC_T, WEIGHTS_T, DST_T  float|half  element types
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           KIND     0..2  see common/pooling.cl (QUANTIZED 0)
//           and those of common/epilogue.cl; RESIDUAL is 0
// Numerics  as in conv2d/dot.cl; results are not rounded before they are pooled
#include "common/border.cl"
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/pooling.cl"
#include "common/types.cl"

#define VALUE_T float
#define PX (POOL_H * POOL_W)
#if KV == 4
#define LOAD_K(T, p, i) LOAD4_ALIGNED(T, p, i)
#define DOT(a, b) dot(a, b)
#define VEC float4
#else
#define LOAD_K(T, p, i) LOAD(T, p, i)
#define DOT(a, b) ((a) * (b))
#define VEC float
#endif

__kernel __attribute__((reqd_work_group_size(LANES, WG_C, 1))) void pooled_convolution(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int group_in, int group_out, int in_h, int in_w,
    int in_c, int dst_h, int dst_w, int out_c, int filter_h, int filter_w, int stride_h,
    int stride_w, int dilation_h, int dilation_w, int top, int left) {
  LOCAL_ARRAY3(float, partial, WG_C, PX, LANES);
  const int lane = get_local_id(0), row = get_local_id(1);
  const int o = get_global_id(1);
  const int pixel = get_group_id(0);
  const int channel = min(o, out_c - 1);  // channels past the end repeat the last one
  const int depth = filter_h * filter_w * group_in;
  src += (size_t)(pixel / dst_w / dst_h) * in_h * in_w * in_c + channel / group_out * group_in;
  weights += channel * depth;
  // Of the window's first result.
  const int first_x = pixel % dst_w * POOL_STRIDE_W * stride_w - left;
  const int first_y = pixel / dst_w % dst_h * POOL_STRIDE_H * stride_h - top;

  float sum[PX];
#pragma unroll
  for (int p = 0; p < PX; ++p) sum[p] = 0.0f;
  for (int k = lane * KV; k < depth; k += LANES * KV) {
    const int tap = k / group_in, i = k - tap * group_in;
    const int u = tap / filter_w, t = tap - u * filter_w;
    const VEC w = LOAD_K(WEIGHTS_T, weights, k);
#pragma unroll
    for (int p = 0; p < PX; ++p) {
      const int y = BORDER(first_y + p / POOL_W * stride_h + u * dilation_h, in_h);
      const int x = BORDER(first_x + p % POOL_W * stride_w + t * dilation_w, in_w);
      if ((uint)y < (uint)in_h && (uint)x < (uint)in_w)
        sum[p] += DOT(w, LOAD_K(SRC_T, src, (y * in_w + x) * in_c + i));
    }
  }
#pragma unroll
  for (int p = 0; p < PX; ++p) partial[row][p][lane] = sum[p];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = LANES / 2; step > 0; step /= 2) {
    if (lane < step) {
#pragma unroll
      for (int p = 0; p < PX; ++p) partial[row][p][lane] += partial[row][p][lane + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0 && o < out_c) {
    const int at = RESULT_AT(pixel, o, out_c);
    const CHANNEL_T own = CHANNEL_AT(o);
    float pool = POOL_START;
#pragma unroll
    for (int p = 0; p < PX; ++p) pool = POOL_ADD(pool, FINISH_SUM(partial[row][p][0], own, at));
    STORE(DST_T, dst, at, POOL_END(pool, PX));
  }
}
