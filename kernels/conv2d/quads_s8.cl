// quads_s8.cl - 2-D convolution of 8-bit integers as in naive.cl, for mobile GPUs; a work-item keeps PX pixels x OV
//               vectors of four channels in named variables and reads words of four input channels
//
// Shapes    src: [n, in_h, in_w, in_c]; dst: [pixels, out_c], pixels = n * out_h * out_w
//           packed: [groups, panels, filter_h * filter_w * words, PANEL] as pack_words.cl writes it,
//           words = ceil(group_in / 4), PANEL = 4 * OV * WG_C
// Launch    axis 0: WG_C work-items per panel; axis 1: blocks of PX consecutive pixels; axis 2: PARTS per
//           group. local = (WG_C, WG_P, PARTS)
// Macros    PX, OV, PARTS, VEC_N, WG_C, WG_P  see common/quad_sums.cl; PARTS share the input channels
//           KV         0|1|4  words read at once: 4 if group_in is a multiple of 16, 1 if it is one of 4; 0:
//                             bytes
//           POINTWISE  0|1    1: output pixel p reads pixel p of the image; in a single image,
//                             pixel p counted from row -top on
//           A_SUMS     0|1    1: weights have the zero point b_zero
//           DOT8       0..3   see common/dot8.cl
//           SRC_T, DST_T  char|uchar  element types
//           REFLECT    0|1    values outside of the image: 0 the word `border`, 1 mirrored; see
//                             common/border.cl
//           and those of common/epilogue.cl
// Numerics  exact
#include "common/dot8.cl"
#include "common/quad_sums.cl"
#include "common/word.cl"

#if KV
#define UNIT 4
#else
#define UNIT 1
#endif
#include "conv2d/quad_places.cl"

#define PANEL_QUADS (OV * WG_C)
#define WEIGHTS(v) const int4 w##v = LOAD4_ALIGNED(int, packed, (w_ + v * WG_C) * 4);
#define ADD_S0(p, v) sum##p##v = DOT8_ADD4(WORD_OF(p, s0), w##v, sum##p##v);
#define ADD_S1(p, v) sum##p##v = DOT8_ADD4(WORD_OF(p, s1), w##v, sum##p##v);
#define ADD_S2(p, v) sum##p##v = DOT8_ADD4(WORD_OF(p, s2), w##v, sum##p##v);
#define ADD_S3(p, v) sum##p##v = DOT8_ADD4(WORD_OF(p, s3), w##v, sum##p##v);
// The products of word i + k.
#define ADD_WORD(k)                           \
  {                                           \
    const int w_ = w + (i + k) * PANEL_QUADS; \
    EACH_VECTOR(WEIGHTS)                      \
    EACH_SUM(ADD_S##k)                        \
  }

#if KV == 4
#define STEP 4
#define WORD_OF(p, s) word##p.s
#define READ(p)                                                    \
  const int4 read##p = WORD4_ALIGNED(SRC_T, src, (at##p + i) * 4); \
  const int4 word##p = INSIDE(p, read##p, (int4)(border));
#define ADD_WORDS ADD_WORD(0) ADD_WORD(1) ADD_WORD(2) ADD_WORD(3)
#else
#define STEP 1
#define WORD_OF(p, s) word##p
#if KV == 1
#define READ(p)                                                  \
  const int read##p = WORD_ALIGNED(SRC_T, src, (at##p + i) * 4); \
  const int word##p = INSIDE(p, read##p, border);
#else
// Elements beyond the group's channels are zero, because sums of rows include them.
#define READ(p)                                                             \
  const int read##p = WORD(SRC_T, src, at##p + i * 4, 1, group_in - i * 4); \
  const int word##p = INSIDE(p, read##p, border & word_mask(group_in - i * 4));
#endif
#define ADD_WORDS ADD_WORD(0)
#endif

// The zero point of the weights: its share is subtracted at the end.
#if A_SUMS
#define DECLARE_ROW(p) int row##p = 0;
#if KV == 4
#define ADD_TO_ROW(p)                                \
  row##p = DOT8_ADD(word##p.s0, 0x01010101, row##p); \
  row##p = DOT8_ADD(word##p.s1, 0x01010101, row##p); \
  row##p = DOT8_ADD(word##p.s2, 0x01010101, row##p); \
  row##p = DOT8_ADD(word##p.s3, 0x01010101, row##p);
#else
#define ADD_TO_ROW(p) row##p = DOT8_ADD(word##p, 0x01010101, row##p);
#endif
#define TAKE_OFF_ZERO(p, v) sum##p##v -= b_zero * row##p;
#else
#define DECLARE_ROW(p)
#define ADD_TO_ROW(p)
#define TAKE_OFF_ZERO(p, v)
#endif

__kernel __attribute__((reqd_work_group_size(WG_C, WG_P, PARTS))) void conv2d_quads_s8(
    __global const SRC_T *src, __global const int *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int group_in, int group_out, int in_h,
    int in_w, int in_c, int out_h, int out_w, int out_c, int filter_h, int filter_w, int stride_h,
    int stride_w, int dilation_h, int dilation_w, int top, int left, int border, int b_zero) {
  const int first = (int)get_global_id(1) * PX;
  const int group = get_group_id(2), first_in = group * group_in;
  const int panel = get_group_id(0), panels = get_num_groups(0);
  const int words = (group_in + 3) / 4;
  // Quads of words of the work-item's weights for a tap.
  int w =
      (group * panels + panel) * (filter_h * filter_w * words * PANEL_QUADS) + (int)get_local_id(0);

  EACH_SUM(DECLARE_SUM)
  EACH_PIXEL(DECLARE_ROW)
  FIRST_PLACE
  EACH_PIXEL(PLACE)
  for (int u = 0; u < filter_h; ++u) {
    for (int t = 0; t < filter_w; ++t) {
      EACH_PIXEL(FIND)
      for (int i = (int)get_local_id(2) * STEP; i < words; i += STEP * PARTS) {
        EACH_PIXEL(READ)
        EACH_PIXEL(ADD_TO_ROW)
        ADD_WORDS
      }
      w += words * PANEL_QUADS;
    }
  }
  EACH_SUM(TAKE_OFF_ZERO)
  SUM_PARTS
  STORE_SUMS(panel * (4 * PANEL_QUADS) + (int)get_local_id(0) * 4, group * group_out)
}
