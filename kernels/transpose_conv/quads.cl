// quads.cl - transposed convolution as in naive.cl, for mobile GPUs; a work-item keeps PX pixels of one row x 4
//            channels in named vectors, because their compilers put arrays into slow memory. The pixels are
//            stride_w apart: they use the same filter columns
//
// Shapes    src: [n, in_h, in_w, in_c]; bias: [out_c]; dst: [n, out_h, out_w, out_c]
//           packed: [panels, filter_h * filter_w * in_c, PANEL] as conv2d/pack_weights.cl writes it
// Launch    axis 0: blocks of 4 channels; axis 1: blocks of PX pixels, counted by phase (x % stride_w) first;
//           axis 2: the n * out_h rows; axes 0 and 1 rounded up. local: any
// Macros    PX        1|2|4         pixels of a work-item
//           PANEL     multiple of 4 neighbouring output channels in packed
//           KV        1|4           4: in_c is a multiple of 4
//           ALIGNED   0|1           1: out_c and the start of each pixel in dst are multiples of 4
//           SRC_KIND, PACKED_KIND   buffer|image  see common/quads.cl; an image only for floats, src only with KV 4
//           SRC_T, PACKED_T, DST_T  float|half, or char|uchar with QUANTIZED  element types
//           and those of common/epilogue.cl
// Numerics  products and sum in SUM_T, in the order of the filter taps, then input channels; the bias
//           is added last. Integers: zero points are subtracted one by one, because each phase has its
//           own taps. With SUM_T half, see common/block_sums.cl
#include "common/block_sums.cl"
#include "common/epilogue.cl"
#include "common/quads.cl"

#if PX == 1
#define EACH(DO) DO(0)
#elif PX == 2
#define EACH(DO) DO(0) DO(1)
#else
#define EACH(DO) DO(0) DO(1) DO(2) DO(3)
#endif

#if QUANTIZED
#define ADD_PRODUCT(a, b, sum) ((a) * (b) + (sum))
#define PIXEL_VALUE(v) ((v) - src_zero)
#define WEIGHTS_VALUE(v) ((v) - weights_zero)
#else
#define ADD_PRODUCT(a, b, sum) mad(a, b, sum)
#define PIXEL_VALUE(v) (v)
#define WEIGHTS_VALUE(v) (v)
#endif

#define DECLARE(p) DECLARE_TOTAL(TOTAL4_T, SUM4_T, sum##p)
#define FLUSH_SUM(p) FLUSH_TOTAL(convert_float4, sum##p)
// A pixel outside of src is read at the nearest position inside, and not added.
#define PLACE(p)                                        \
  const bool inside##p = (uint)(in_x + p) < (uint)in_w; \
  const int at##p = (row + min(max(in_x + p, 0), in_w - 1)) * in_c;
#define LOAD_TAP(k) \
  WEIGHTS_VALUE(FACTOR_QUAD(PACKED_KIND, PACKED_T, packed, (w + (i + (k)) * PANEL) >> 2))
#if KV == 4
#define READ(p)                                                                       \
  SUM4_T pixel##p = PIXEL_VALUE(FACTOR_QUAD(SRC_KIND, SRC_T, src, (at##p + i) >> 2)); \
  if (!inside##p) pixel##p = (SUM4_T)(0);
#define ADD_LANE(p, lane) \
  PARTIAL(sum##p) = ADD_PRODUCT((SUM4_T)(pixel##p.lane), tap, PARTIAL(sum##p));
#define ADD0(p) ADD_LANE(p, s0)
#define ADD1(p) ADD_LANE(p, s1)
#define ADD2(p) ADD_LANE(p, s2)
#define ADD3(p) ADD_LANE(p, s3)
#define ADD_TAP(k)                  \
  {                                 \
    const SUM4_T tap = LOAD_TAP(k); \
    EACH(ADD##k)                    \
  }
#else
#define READ(p)                                                     \
  SUM_T pixel##p = PIXEL_VALUE(LOAD_FACTOR(SRC_T, src, at##p + i)); \
  if (!inside##p) pixel##p = 0;
#define ADD(p) PARTIAL(sum##p) = ADD_PRODUCT((SUM4_T)(pixel##p), tap, PARTIAL(sum##p));
#endif

#if ALIGNED
#define STORE_SUM(v) STORE4_ALIGNED(DST_T, dst, at, FINISH_SUM4_ALIGNED(v, CHANNEL4_AT(c), at))
#else
#define STORE_LANE(v, j) \
  if (c + j < out_c) STORE(DST_T, dst, at + j, FINISH_SUM(v, CHANNEL_AT(c + j), at + j));
#define STORE_SUM(v)  \
  STORE_LANE(v.s0, 0) \
  STORE_LANE(v.s1, 1) \
  STORE_LANE(v.s2, 2) \
  STORE_LANE(v.s3, 3)
#endif
#define FINISH_PIXEL(p)                                      \
  if (phase + (first + p) * stride_w < out_w) {              \
    const int x = phase + (first + p) * stride_w;            \
    const int at = RESULT_AT(out_row * out_w + x, c, out_c); \
    STORE_SUM(sum##p);                                       \
  }

__kernel void transpose_conv_quads(QUADS(SRC_KIND, SRC_T) src, QUADS(PACKED_KIND, PACKED_T) packed,
                                   BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int blocks, int in_h,
                                   int in_w, int in_c, int out_h, int out_w, int out_c,
                                   int filter_h, int filter_w, int stride_h, int stride_w, int top,
                                   int left, int src_zero, int weights_zero) {
  const int c = get_global_id(0) * 4, block = get_global_id(1), out_row = get_global_id(2);
  if (c >= out_c || block >= blocks) return;
  const int y = out_row % out_h, first_row = out_row / out_h * in_h;
  const int phase = block % stride_w, first = block / stride_w * PX;  // in units of stride_w
  const int first_w = c / PANEL * PANEL * filter_h * filter_w * in_c + c % PANEL;

  EACH(DECLARE)
  COUNT_PRODUCTS
  for (int u = (y + top) % stride_h; u < filter_h; u += stride_h) {
    const int in_y = (y + top - u) / stride_h;
    if (in_y < 0 || in_y >= in_h) continue;
    const int row = (first_row + in_y) * in_w;
    for (int v = (phase + left) % stride_w; v < filter_w; v += stride_w) {
      const int in_x = (phase + left - v) / stride_w + first;
      EACH(PLACE)
      const int w = first_w + (u * filter_w + v) * in_c * PANEL;
      for (int i = 0; i < in_c; i += KV) {
        EACH(READ)
#if KV == 4
        ADD_TAP(0)
        ADD_TAP(1)
        ADD_TAP(2)
        ADD_TAP(3)
#else
        const SUM4_T tap = LOAD_TAP(0);
        EACH(ADD)
#endif
        ADDED(KV, EACH(FLUSH_SUM))
      }
    }
  }
  EACH(FLUSH_SUM)
  EACH(FINISH_PIXEL)
}
