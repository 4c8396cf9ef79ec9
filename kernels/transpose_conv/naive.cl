// naive.cl - transposed convolution, gathered: dst[n, y, x, o] = act(bias[o] + sum over u, v, i of
//            src[n, (y + top - u) / stride_h, (x + left - v) / stride_w, i] * weights[o, u, v, i])
//            if both divisions leave no remainder and src has the element
//
// Shapes    src: [n, in_h, in_w, in_c]; weights: [out_c, filter_h, filter_w, in_c]; bias: [out_c]
//           dst: [n, out_h, out_w, out_c]
// Launch    one work-item per element of dst: global = (elements, rounded up), local = (64)
// Macros    SRC_T, WEIGHTS_T, DST_T  float|half, or char|uchar|short with QUANTIZED  element types
//           and those of common/epilogue.cl
// Numerics  products and sum in SUM_T, in the order u, v, i; the bias is added last. Integers: zero points
//           are subtracted one by one, because each phase of the pixels has its own taps
#include "common/epilogue.cl"
#include "common/types.cl"

__kernel void transpose_conv_naive(__global const SRC_T *src, __global const WEIGHTS_T *weights,
                                   BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int elements, int in_h,
                                   int in_w, int in_c, int out_h, int out_w, int out_c,
                                   int filter_h, int filter_w, int stride_h, int stride_w, int top,
                                   int left, int src_zero, int weights_zero) {
  const int index = get_global_id(0);
  if (index >= elements) return;
  const int o = index % out_c;
  const int x = index / out_c % out_w;
  const int y = index / out_c / out_w % out_h;
  const int n = index / out_c / out_w / out_h;
  src += n * in_h * in_w * in_c;
  weights += o * filter_h * filter_w * in_c;

#if QUANTIZED == 4
  const int zero = ROW_ZERO(n);
#else
  const int zero = src_zero;
#endif
  SUM_T sum = 0;
  for (int u = (y + top) % stride_h; u < filter_h; u += stride_h) {
    const int in_y = (y + top - u) / stride_h;
    if (in_y < 0 || in_y >= in_h) continue;
    for (int v = (x + left) % stride_w; v < filter_w; v += stride_w) {
      const int in_x = (x + left - v) / stride_w;
      if (in_x < 0 || in_x >= in_w) continue;
      const int pixel = (in_y * in_w + in_x) * in_c;
      const int tap = (u * filter_w + v) * in_c;
      for (int i = 0; i < in_c; ++i) {
        const SUM_T a = LOAD(SRC_T, src, pixel + i) - zero;
        const SUM_T b = LOAD(WEIGHTS_T, weights, tap + i) - weights_zero;
        sum += a * b;
      }
    }
  }
  const int at = RESULT_AT(index / out_c, o, out_c);
  STORE(DST_T, dst, at, FINISH_SUM(sum, CHANNEL_AT(o), at));
}
