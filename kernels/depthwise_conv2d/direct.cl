// direct.cl - depthwise convolution as in naive.cl, of any geometry; a work-item keeps PX pixels of one
//             row x VW channels in registers
//
// Shapes    src: [n, in_h, in_w, in_c]; weights: [1, filter_h, filter_w, out_c]; bias: [out_c]
//           dst: [n, out_h, out_w, out_c]; out_c = MULTIPLIER * in_c is a multiple of VW
// Launch    axis 0: channel blocks; axis 1: blocks of PX pixels of a row; along both, a work-item
//           also takes the blocks one or more global sizes further on; axis 2: the n * out_h rows.
//           local = (WG_C, WG_X, 1)
// Macros    VW       1|4|8|16    channels of a work-item; above 4 only if it divides MULTIPLIER or
//                                MULTIPLIER is 1
//           MULTIPLIER  1..      output channels per input channel
//           PX       1..8        pixels of a work-item
//           WG_C, WG_X  1..64    size of a work-group
//           WEIGHTS_SHIFTED  0|1  1: weights_zero may differ from 0
//           SRC_T, WEIGHTS_T, DST_T  float|half, or char|uchar with QUANTIZED  element types
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sum in SUM_T, in the order of the filter taps; the bias is added last. Integers:
//           values outside of src are src_zero
#include "common/border.cl"
#include "common/vector_epilogue.cl"

// The VW input channels that the output channels from c on read, at one pixel.
#if MULTIPLIER == 1
#define LOAD_PIXEL(pixel, c) LOAD_VEC(SRC_T, src, (pixel) + (c))
#elif MULTIPLIER % VW == 0
#define LOAD_PIXEL(pixel, c) (VEC)(LOAD(SRC_T, src, (pixel) + (c) / MULTIPLIER))
#else
#define LANE(pixel, c) LOAD(SRC_T, src, (pixel) + (c) / MULTIPLIER)
#define LOAD_PIXEL(pixel, c) \
  (VEC)(LANE(pixel, c), LANE(pixel, (c) + 1), LANE(pixel, (c) + 2), LANE(pixel, (c) + 3))
#endif

#if WEIGHTS_SHIFTED
#define LOAD_WEIGHTS(at) (LOAD_VEC(WEIGHTS_T, weights, at) - (VEC)(weights_zero))
#else
#define LOAD_WEIGHTS(at) LOAD_VEC(WEIGHTS_T, weights, at)
#endif
// If the compiler knows that the numbers are small, it uses faster products.
#if QUANTIZED
#define ADD_OUTSIDE(sum, w) (sum) = MAD_VEC(w, (VEC)((SRC_T)src_zero), sum)
#else
#define ADD_OUTSIDE(sum, w)
#endif

__kernel __attribute__((reqd_work_group_size(WG_C, WG_X, 1))) void depthwise_conv2d_direct(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int in_h, int in_w, int in_c, int out_h, int out_w,
    int out_c, int filter_h, int filter_w, int stride_h, int stride_w, int dilation_h,
    int dilation_w, int top, int left, int src_zero, int weights_zero) {
  const int row = get_global_id(2);
  const int first_y = row % out_h * stride_h - top;
  src += row / out_h * in_h * in_w * in_c;
  const int first_pixel = row * out_w;

  for (int x = get_global_id(1) * PX; x < out_w; x += get_global_size(1) * PX) {
    const int first_x = x * stride_w - left;
    const int last_x = first_x + (PX - 1) * stride_w + (filter_w - 1) * dilation_w;
    const bool interior = first_x >= 0 && last_x < in_w;
    for (int c = get_global_id(0) * VW; c < out_c; c += get_global_size(0) * VW) {
      VEC sum[PX];
#pragma unroll
      for (int p = 0; p < PX; ++p) sum[p] = (VEC)(0);

      for (int u = 0; u < filter_h; ++u) {
        const int in_y = BORDER(first_y + u * dilation_h, in_h);
        const bool row_inside = (uint)in_y < (uint)in_h;
#if !QUANTIZED
        if (!row_inside) continue;
#endif
        for (int v = 0; v < filter_w; ++v) {
          const VEC w = LOAD_WEIGHTS((u * filter_w + v) * out_c + c);
          const int in_x = first_x + v * dilation_w;
          const int from = in_y * in_w * in_c;
          if (interior && row_inside) {
#pragma unroll
            for (int p = 0; p < PX; ++p) {
              sum[p] = MAD_VEC(w, LOAD_PIXEL(from + (in_x + p * stride_w) * in_c, c), sum[p]);
            }
          } else {
#pragma unroll
            for (int p = 0; p < PX; ++p) {
              const int at_x = BORDER(in_x + p * stride_w, in_w);
              if (row_inside && (uint)at_x < (uint)in_w) {
                sum[p] = MAD_VEC(w, LOAD_PIXEL(from + at_x * in_c, c), sum[p]);
              } else {
                ADD_OUTSIDE(sum[p], w);
              }
            }
          }
        }
      }

      const CHANNEL_VEC_T channel = CHANNEL_VEC_AT(c);
#pragma unroll
      for (int p = 0; p < PX; ++p) {
        const int at = RESULT_AT(first_pixel + x + p, c, out_c);
        if (x + p < out_w) STORE_VEC(DST_T, dst, at, FINISH_SUM_VEC(sum[p], channel, at));
      }
    }
  }
}
