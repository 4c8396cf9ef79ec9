// quads.cl - 2-D convolution as in naive.cl, for mobile GPUs; a work-item keeps PX pixels x OV vectors of four
//            channels in named variables and reads four input channels at a time; the image and the
//            weights are buffers or OpenCL images
//
// Shapes    src: [n, in_h, in_w, in_c]; bias: [out_c]; dst: [pixels, out_c], pixels = n * out_h * out_w
//           packed: [groups, panels, filter_h * filter_w * group_in, PANEL] as pack_weights.cl writes
//           it, PANEL = 4 * OV * WG_C
// Launch    axis 0: WG_C work-items per panel; axis 1: blocks of PX consecutive pixels; axis 2: PARTS per
//           group. local = (WG_C, WG_P, PARTS)
// Macros    PX, OV, PARTS, VEC_N, WG_C, WG_P  see common/quad_sums.cl; PARTS share the input channels
//           KV         1|4     4: group_in and in_c are multiples of 4
//           POINTWISE  0|1     1: output pixel p reads pixel p of the image; in a single image,
//                              pixel p counted from row -top on
//           SRC_KIND, PACKED_KIND  buffer|image  see common/quads.cl; SRC_KIND is buffer with KV 1
//           SRC_T, PACKED_T, DST_T  float|half  element types; PACKED_T also weight8, see common/types.cl
//           REFLECT    0|1     values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sum in float, in the order of the filter taps, then input channels, as PARTS sums,
//           which are added in order; the bias is added last. With SUM_T half, see common/block_sums.cl
#include "common/quad_sums.cl"
#include "common/quads.cl"

#define UNIT KV
#include "conv2d/quad_places.cl"

#define PANEL_QUADS (OV * WG_C)
#define WEIGHTS(v) const SUM4_T w##v = FACTOR_QUAD(PACKED_KIND, PACKED_T, packed, w_ + v * WG_C);
#define ADD_S0(p, v) PARTIAL(sum##p##v) = mad(w##v, (SUM4_T)(quad##p.s0), PARTIAL(sum##p##v));
#define ADD_S1(p, v) PARTIAL(sum##p##v) = mad(w##v, (SUM4_T)(quad##p.s1), PARTIAL(sum##p##v));
#define ADD_S2(p, v) PARTIAL(sum##p##v) = mad(w##v, (SUM4_T)(quad##p.s2), PARTIAL(sum##p##v));
#define ADD_S3(p, v) PARTIAL(sum##p##v) = mad(w##v, (SUM4_T)(quad##p.s3), PARTIAL(sum##p##v));
// The products of input channel i + k.
#define ADD_CHANNEL(k)                        \
  {                                           \
    const int w_ = w + (i + k) * PANEL_QUADS; \
    EACH_VECTOR(WEIGHTS)                      \
    EACH_SUM(ADD_S##k)                        \
  }

#if KV == 4
#define READ(p)                                                            \
  const SUM4_T read##p = FACTOR_QUAD(SRC_KIND, SRC_T, src, at##p + i / 4); \
  const SUM4_T quad##p = INSIDE(p, read##p, (SUM4_T)(0));
#else
#define READ(p)                                                            \
  SUM4_T quad##p;                                                          \
  if (channels >= 4) {                                                     \
    quad##p = LOAD_FACTOR4(SRC_T, src, at##p + i);                         \
  } else {                                                                 \
    quad##p = (SUM4_T)(LOAD_FACTOR(SRC_T, src, at##p + i), 0, 0, 0);       \
    if (channels > 1) quad##p.s1 = LOAD_FACTOR(SRC_T, src, at##p + i + 1); \
    if (channels > 2) quad##p.s2 = LOAD_FACTOR(SRC_T, src, at##p + i + 2); \
  }                                                                        \
  quad##p = INSIDE(p, quad##p, (SUM4_T)(0));
#endif

__kernel __attribute__((reqd_work_group_size(WG_C, WG_P, PARTS))) void conv2d_quads(
    QUADS(SRC_KIND, SRC_T) src, QUADS(PACKED_KIND, PACKED_T) packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int group_in, int group_out, int in_h,
    int in_w, int in_c, int out_h, int out_w, int out_c, int filter_h, int filter_w, int stride_h,
    int stride_w, int dilation_h, int dilation_w, int top, int left) {
  const int first = (int)get_global_id(1) * PX;
  const int group = get_group_id(2), first_in = group * group_in;
  const int panel = get_group_id(0), panels = get_num_groups(0);
  // Quads of the work-item's weights for a tap.
  int w = (group * panels + panel) * (filter_h * filter_w * group_in * PANEL_QUADS) +
          (int)get_local_id(0);

  EACH_SUM(DECLARE_SUM)
  COUNT_PRODUCTS
  FIRST_PLACE
  EACH_PIXEL(PLACE)
  for (int u = 0; u < filter_h; ++u) {
    for (int t = 0; t < filter_w; ++t) {
      EACH_PIXEL(FIND)
      for (int i = (int)get_local_id(2) * 4; i < group_in; i += 4 * PARTS) {
#if KV == 4
        EACH_PIXEL(READ)
        ADD_CHANNEL(0)
        ADD_CHANNEL(1)
        ADD_CHANNEL(2)
        ADD_CHANNEL(3)
#else
        const int channels = group_in - i;
        EACH_PIXEL(READ)
        ADD_CHANNEL(0)
        if (channels > 1) ADD_CHANNEL(1)
        if (channels > 2) ADD_CHANNEL(2)
        if (channels > 3) ADD_CHANNEL(3)
#endif
        ADDED(4, EACH_SUM(FLUSH_SUM))
      }
      w += group_in * PANEL_QUADS;
    }
  }
  EACH_SUM(FLUSH_SUM)
  SUM_PARTS
  STORE_SUMS(panel * (4 * PANEL_QUADS) + (int)get_local_id(0) * 4, group * group_out)
}
