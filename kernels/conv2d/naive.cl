// naive.cl - dst[n, y, x, o] = act(bias[o] + sum over u, v, i of
//            src[n, y * stride_h - top + u * dilation_h, x * stride_w - left + v * dilation_w, i0 + i]
//            * weights[o, u, v, i]), with src zero or mirrored outside
//            of the image; i0 = o / group_out * group_in
//
// Shapes    src: [n, in_h, in_w, in_c]; weights: [out_c, filter_h, filter_w, group_in]; bias: [out_c]
//           dst: [n, out_h, out_w, out_c]
// Launch    one work-item per element of dst: global = (elements, rounded up), local = (64)
// Macros    SRC_T, WEIGHTS_T, DST_T  float|half, or char|uchar|short with QUANTIZED  element types
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sum in SUM_T, in the order u, v, i; the bias is added last. Integers: values
//           outside of src are src_zero
#include "common/border.cl"
#include "common/epilogue.cl"
#include "common/types.cl"

__kernel void conv2d_naive(__global const SRC_T *src, __global const WEIGHTS_T *weights,
                           BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int elements, int group_in,
                           int group_out, int in_h, int in_w, int in_c, int out_h, int out_w,
                           int out_c, int filter_h, int filter_w, int stride_h, int stride_w,
                           int dilation_h, int dilation_w, int top, int left, int src_zero,
                           int weights_zero) {
  const int index = get_global_id(0);
  if (index >= elements) return;
  const int o = index % out_c;
  const int x = index / out_c % out_w;
  const int y = index / out_c / out_w % out_h;
  const int n = index / out_c / out_w / out_h;
  src += n * in_h * in_w * in_c + o / group_out * group_in;
  weights += o * filter_h * filter_w * group_in;

  SUM_T sum = 0;
  for (int u = 0; u < filter_h; ++u) {
    const int in_y = BORDER(y * stride_h - top + u * dilation_h, in_h);
    for (int v = 0; v < filter_w; ++v) {
      const int in_x = BORDER(x * stride_w - left + v * dilation_w, in_w);
      const bool inside = in_y >= 0 && in_y < in_h && in_x >= 0 && in_x < in_w;
      const int pixel = (in_y * in_w + in_x) * in_c;
      const int tap = (u * filter_w + v) * group_in;
      for (int i = 0; i < group_in; ++i) {
        const SUM_T a = inside ? LOAD(SRC_T, src, pixel + i) : (SUM_T)src_zero;
        const SUM_T b = LOAD(WEIGHTS_T, weights, tap + i) - weights_zero;
        sum += a * b;
      }
    }
  }
  const int at = RESULT_AT(index / out_c, o, out_c);
  STORE(DST_T, dst, at, FINISH_SUM(sum, CHANNEL_AT(o), at));
}
