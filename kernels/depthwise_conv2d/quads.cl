// quads.cl - depthwise convolution as in naive.cl, of any geometry, for mobile GPUs: a work-item keeps
//            its data in named variables, because their compilers put arrays into slow memory
//
// Shapes    src: [n, in_h, in_w, in_c]; weights: [1, filter_h, filter_w, out_c]; bias: [out_c]
//           dst: [n, out_h, out_w, out_c]; out_c = MULTIPLIER * in_c is a multiple of VW
// Launch    axis 0: channel blocks of VW; axis 1: blocks of PX pixels of a row; axis 2: the n * out_h rows;
//           axes 0 and 1 rounded up. local: any
// Macros    VW       1|4        channels of a work-item
//           PX       1|2|4      pixels of a work-item
//           SLIDES   0|1        1: stride_w is dilation_w, so neighbouring pixels share what they read
//           FILTER_W 0..5       width of the filter; 0: the argument filter_w
//           MULTIPLIER  1..     output channels per input channel
//           ALIGNED  0|1        1: every pixel of dst begins at a multiple of VW
//           SRC_KIND, WEIGHTS_KIND  buffer|image  see common/quads.cl; an image only for floats, with VW 4;
//                                   src only with MULTIPLIER 1
//           WEIGHTS_SHIFTED  0|1  1: weights_zero may differ from 0
//           SRC_T, WEIGHTS_T, DST_T  float|half, or char|uchar with QUANTIZED  element types
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sum in SUM_T, in the order of the filter taps; the bias is added last; with SUM_T
//           half, see common/block_sums.cl. Integers: values outside of src are src_zero
#include "common/block_sums.cl"
#include "common/border.cl"
#include "common/quads.cl"
#include "common/vector_epilogue.cl"

// DO(p) for each pixel, and DO(p, p + 1) for each pair of neighbours.
#if PX == 1
#define EACH(DO) DO(0)
#define EACH_PAIR(DO)
#define LAST_OF(name) name##0
#elif PX == 2
#define EACH(DO) DO(0) DO(1)
#define EACH_PAIR(DO) DO(0, 1)
#define LAST_OF(name) name##1
#else
#define EACH(DO) DO(0) DO(1) DO(2) DO(3)
#define EACH_PAIR(DO) DO(0, 1) DO(1, 2) DO(2, 3)
#define LAST_OF(name) name##3
#endif

// Factors of products: vectors of sums, or of halves.
#if !HALF_SUMS
#define PART_VEC VEC
#define TO_VEC
#elif VW == 1
#define PART_VEC half
#define TO_VEC convert_float
#else
#define PART_VEC half4
#define TO_VEC convert_float4
#endif

// The input channels of a pixel that the output channels from c on read.
#define LANE(pixel, c) LOAD_FACTOR(SRC_T, src, (pixel) * in_c + (c) / MULTIPLIER)
#if VW == 1
#define LOAD_PIXEL(pixel) LANE(pixel, c)
#elif MULTIPLIER == 1
#define LOAD_PIXEL(pixel) FACTOR_QUAD(SRC_KIND, SRC_T, src, ((pixel) * in_c + c) >> 2)
#elif MULTIPLIER % 4 == 0
#define LOAD_PIXEL(pixel) (PART_VEC)(LANE(pixel, c))
#else
#define LOAD_PIXEL(pixel) \
  (PART_VEC)(LANE(pixel, c), LANE(pixel, c + 1), LANE(pixel, c + 2), LANE(pixel, c + 3))
#endif

#if VW == 1
#define LOAD_TAP(at) LOAD_FACTOR(WEIGHTS_T, weights, at)
#else
#define LOAD_TAP(at) FACTOR_QUAD(WEIGHTS_KIND, WEIGHTS_T, weights, (at) >> 2)
#endif
#if WEIGHTS_SHIFTED
#define LOAD_WEIGHTS(at) (LOAD_TAP(at) - (VEC)(weights_zero))
#else
#define LOAD_WEIGHTS(at) LOAD_TAP(at)
#endif
#if QUANTIZED
#define OUTSIDE (VEC)((SRC_T)src_zero)
#else
#define OUTSIDE (PART_VEC)(0)
#endif

// to = the pixel at column `column` of the row, or the value outside, without a branch around the read.
#define READ(to, column)                                                       \
  do {                                                                         \
    const int x_ = BORDER(column, in_w), nearest_ = min(max(x_, 0), in_w - 1); \
    to = LOAD_PIXEL(row + nearest_);                                           \
    if (x_ != nearest_ || !row_inside) to = OUTSIDE;                           \
  } while (0);

#define DECLARE(p)                     \
  DECLARE_TOTAL(VEC, PART_VEC, sum##p) \
  PART_VEC pixel##p;
#define FLUSH(p) FLUSH_TOTAL(TO_VEC, sum##p)
#define READ_TAP(p) READ(pixel##p, first_x + p * stride_w + v * dilation_w)
#define READ_FIRST(p, next) READ(pixel##next, first_x + p * stride_w)
#define SLIDE(p, next) pixel##p = pixel##next;
#define ADD(p) PARTIAL(sum##p) = MAD_VEC(w, pixel##p, PARTIAL(sum##p));
#if ALIGNED
#define STORE_RESULT(at, v) STORE_VEC_ALIGNED(DST_T, dst, at, v)
#else
#define STORE_RESULT(at, v) STORE_VEC(DST_T, dst, at, v)
#endif
// A channel's parameters are loaded once; for integers once per pixel, so that Oclgrind 21.10 knows all
// functions.
#if QUANTIZED
#define CHANNEL_OF_SUM CHANNEL_VEC_AT(c)
#else
#define CHANNEL_OF_SUM channel
#endif
#define FINISH_PIXEL(p)                                           \
  if (x + p < out_w) {                                            \
    const int at = RESULT_AT(out_row * out_w + x + p, c, out_c);  \
    STORE_RESULT(at, FINISH_SUM_VEC(sum##p, CHANNEL_OF_SUM, at)); \
  }

__kernel void depthwise_conv2d_quads(QUADS(SRC_KIND, SRC_T) src,
                                     QUADS(WEIGHTS_KIND, WEIGHTS_T) weights,
                                     BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int in_h, int in_w,
                                     int in_c, int out_h, int out_w, int out_c, int filter_h,
                                     int filter_w, int stride_h, int stride_w, int dilation_h,
                                     int dilation_w, int top, int left, int src_zero,
                                     int weights_zero) {
  const int c = get_global_id(0) * VW, x = get_global_id(1) * PX, out_row = get_global_id(2);
  if (c >= out_c || x >= out_w) return;
  const int first_y = out_row % out_h * stride_h - top, first_x = x * stride_w - left;
  const int first_row = out_row / out_h * in_h;
  const int width = FILTER_W > 0 ? FILTER_W : filter_w;

  EACH(DECLARE)
  COUNT_PRODUCTS
  for (int u = 0; u < filter_h; ++u) {
    const int y = BORDER(first_y + u * dilation_h, in_h);
    const bool row_inside = (uint)y < (uint)in_h;
#if !QUANTIZED
    if (!row_inside) continue;
#endif
    const int row = (first_row + min(max(y, 0), in_h - 1)) * in_w;
#if SLIDES
    EACH_PAIR(READ_FIRST)
#endif
#if FILTER_W
#pragma unroll
#endif
    for (int v = 0; v < width; ++v) {
#if SLIDES
      EACH_PAIR(SLIDE)
      READ(LAST_OF(pixel), first_x + (v + PX - 1) * stride_w)
#else
      EACH(READ_TAP)
#endif
      const PART_VEC w = LOAD_WEIGHTS((u * width + v) * out_c + c);
      EACH(ADD)
#if !FILTER_W
      ADDED(1, EACH(FLUSH))
#endif
    }
#if FILTER_W
    ADDED(FILTER_W, EACH(FLUSH))
#endif
  }
  EACH(FLUSH)

#if !QUANTIZED
  const CHANNEL_VEC_T channel = CHANNEL_VEC_AT(c);
#endif
  EACH(FINISH_PIXEL)
}
