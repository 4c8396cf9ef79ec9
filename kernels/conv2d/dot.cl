// dot.cl - 2-D convolution as in naive.cl for few outputs: LANES work-items share each sum, so that a
//          small image keeps many of them busy; weights are read in their stored layout
//
// Shapes    src: [n, in_h, in_w, in_c]; weights: OHWI, [out_c, depth], depth = filter_h * filter_w *
//           group_in; bias: [out_c]; dst: [pixels, out_c], pixels = n * out_h * out_w
// Launch    axis 0: LANES; axis 1: output channels, rounded up to multiples of WG_C; axis 2: blocks of
//           PX consecutive pixels. local = (LANES, WG_C, 1)
// Macros    LANES  8..64, a power of two  work-items that share a sum
//           WG_C   1..32    output channels of a work-group
//           PX     1..LANES pixels of a work-item
//           KV     1|4      elements read at once; divides group_in
//           SRC_T, WEIGHTS_T, DST_T  float|half  element types; WEIGHTS_T also weight8, see common/types.cl
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sums in float; a lane adds every LANES-th product (group of KV); the lanes' sums
//           are added as a tree; the bias is added last
#include "common/border.cl"
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"

#if KV == 4
#define LOAD_K(T, p, i) LOAD4_ALIGNED(T, p, i)
#define DOT(a, b) dot(a, b)
#define VEC float4
#else
#define LOAD_K(T, p, i) LOAD(T, p, i)
#define DOT(a, b) ((a) * (b))
#define VEC float
#endif

__kernel __attribute__((reqd_work_group_size(LANES, WG_C, 1))) void conv2d_dot(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int group_in, int group_out, int in_h,
    int in_w, int in_c, int out_h, int out_w, int out_c, int filter_h, int filter_w, int stride_h,
    int stride_w, int dilation_h, int dilation_w, int top, int left) {
  LOCAL_ARRAY3(float, partial, WG_C, PX, LANES);
  const int lane = get_local_id(0), row = get_local_id(1);
  const int o = get_global_id(1);
  const int first = (int)get_group_id(2) * PX;
  const int channel = min(o, out_c - 1);  // channels past the end repeat the last one
  src += channel / group_out * group_in;
  const int depth = filter_h * filter_w * group_in;
  weights += channel * depth;

  int in_x[PX], in_y[PX], image[PX];
  float sum[PX];
#pragma unroll
  for (int p = 0; p < PX; ++p) {
    const int pixel = min(first + p, pixels - 1);
    in_x[p] = pixel % out_w * stride_w - left;
    in_y[p] = pixel / out_w % out_h * stride_h - top;
    image[p] = pixel / out_w / out_h * in_h * in_w;
    sum[p] = 0.0f;
  }
  for (int k = lane * KV; k < depth; k += LANES * KV) {
    const int tap = k / group_in, i = k - tap * group_in;
    const int u = tap / filter_w, t = tap - u * filter_w;
    const VEC w = LOAD_K(WEIGHTS_T, weights, k);
#pragma unroll
    for (int p = 0; p < PX; ++p) {
      const int y = BORDER(in_y[p] + u * dilation_h, in_h);
      const int x = BORDER(in_x[p] + t * dilation_w, in_w);
      if ((uint)y < (uint)in_h && (uint)x < (uint)in_w) {
        sum[p] += DOT(w, LOAD_K(SRC_T, src, (image[p] + y * in_w + x) * in_c + i));
      }
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
  if (lane < PX && first + lane < pixels && o < out_c) {
    const int at = RESULT_AT(first + lane, o, out_c);
    STORE(DST_T, dst, at, FINISH_SUM(partial[row][lane][0], CHANNEL_AT(o), at));
  }
}
