// implicit_gemm.cl - 2-D convolution as in naive.cl, as a tiled product of matrices; the rows of the
//                    left one (im2col) are read from src on the fly
//
// Shapes    src: [n, in_h, in_w, in_c]; bias: [out_c]; residual: like dst
//           dst: [pixels, out_c], pixels = n * out_h * out_w
//           packed: [groups, panels, depth, TN] as pack_weights.cl writes it,
//           depth = filter_h * filter_w * group_in
//           With SPLIT dst is a buffer [splits, pixels, out_c] of SUM_T, for sum_splits.cl: each sum covers
//           `chunk` elements of depth; chunk is a multiple of TK
//           With TILE_ARITH 2 elements of the product are words of four input channels (the last word of a
//           tap may have fewer), and depth and chunk count words; packed is as pack_words.cl writes it,
//           and border is the word outside of src
// Launch    one work-group per tile of TM pixels x TN channels and per split:
//           global = (TILE_ITEMS * panels, ceil(pixels / TM), groups * splits),
//           local = (TILE_ITEMS, 1, 1)
// Macros    GATHER  0..4  how elements of src are found: 0 row p is pixel p of src (1 x 1, stride 1,
//                         one group, group_in a multiple of 4; a single image may start at row
//                         -top); 1 one filter tap per step (group_in a multiple of TK); 2 one per
//                         four elements (group_in a multiple of 4); 3 one per element; 4 one per
//                         element, words made of bytes (group_in not a multiple of 4; 0..3 read
//                         whole words)
//           TAIL    0|1   1: depth is not a multiple of TK
//           SPLIT   0|1   1: there are parameters splits and chunk
//           SRC_T, PACKED_T, DST_T float|half  element types; with TILE_ARITH 2 char|uchar, int, and
//                         that of src, or int with SPLIT
//           TM, TN, TK, RM, RN, SLICES, VEC_N, TILE_ARITH  see common/tile.cl
//           A_SUMS, B_SUMS, DOT8 if TILE_ARITH == 2  see common/tile.cl; B_SUMS is 0
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  see common/tile.cl; depth is in the order of the filter taps, then input channels;
//           bias and residual are added last
#include "common/border.cl"
#include "common/tile.cl"

#if TILE_ARITH == 2
#include "common/word.cl"
#define SRC_QUAD(i) WORD4_ALIGNED(SRC_T, src, (i) * 4)
#define SRC_ELEMENT(i) WORD_ALIGNED(SRC_T, src, (i) * 4)
// Elements beyond the depth are zero, because sums of rows include them.
#define OUTSIDE(in_depth) ((in_depth) ? border : 0)
#else
#define SRC_QUAD(i) LOAD4_ALIGNED(SRC_T, src, i)
#define SRC_ELEMENT(i) LOAD(SRC_T, src, i)
#define OUTSIDE(in_depth) 0.0f
#endif

// Position of an item's quad q; rows past the last one repeat it, so they need no condition.
#define ROW_OF(q) min(first_pixel + TILE_K4_ROW(q), pixels - 1)
#define NEXT_TAP(t, u)                     \
  {                                        \
    const bool next_row = ++t == filter_w; \
    t = next_row ? 0 : t;                  \
    u += next_row ? 1 : 0;                 \
  }

#if GATHER == 0

#define TILE_LOAD_A(a, step)                                 \
  _Pragma("unroll") for (int q = 0; q < TILE_AQ; ++q) {      \
    a[q] = (QUAD_T)(0);                                      \
    if (TILE_HAS(q, TM) && (!TAIL || (step) + k0 < depth)) { \
      a[q] = SRC_QUAD(at[q] + (step));                       \
    }                                                        \
  }

#elif GATHER == 1

// Finds the quads of tap (u0, t0).
#define FIND_TAP                                                                 \
  _Pragma("unroll") for (int q = 0; q < TILE_AQ; ++q) {                          \
    const int y = BORDER(in_y[q] + u0 * dilation_h, in_h);                       \
    const int x = BORDER(in_x[q] + t0 * dilation_w, in_w);                       \
    inside[q] = (uint)y < (uint)in_h && (uint)x < (uint)in_w && TILE_HAS(q, TM); \
    at[q] = (image[q] + y * in_w + x) * in_c + i0 + k0;                          \
  }
#define TILE_LOAD_A(a, step)                            \
  _Pragma("unroll") for (int q = 0; q < TILE_AQ; ++q) { \
    a[q] = (QUAD_T)(OUTSIDE(true));                     \
    if (inside[q]) a[q] = SRC_QUAD(at[q]);              \
    at[q] += TK;                                        \
  }                                                     \
  i0 += TK;                                             \
  if (i0 == channels_in) {                              \
    i0 = 0;                                             \
    NEXT_TAP(t0, u0)                                    \
    FIND_TAP                                            \
  }

#else

// Moves the item's tap on by a step.
#define NEXT_STEP \
  for (i0 += TK; i0 >= channels_in; i0 -= channels_in) NEXT_TAP(t0, u0)

#if GATHER == 2
#define TILE_LOAD_A(a, step)                                                                \
  _Pragma("unroll") for (int q = 0; q < TILE_AQ; ++q) {                                     \
    const int y = BORDER(in_y[q] + u0 * dilation_h, in_h);                                  \
    const int x = BORDER(in_x[q] + t0 * dilation_w, in_w);                                  \
    a[q] = (QUAD_T)(OUTSIDE(u0 < filter_h));                                                \
    if (TILE_HAS(q, TM) && u0 < filter_h && (uint)y < (uint)in_h && (uint)x < (uint)in_w) { \
      a[q] = SRC_QUAD((image[q] + y * in_w + x) * in_c + i0);                               \
    }                                                                                       \
  }                                                                                         \
  NEXT_STEP
#else
#if GATHER == 4
#undef SRC_ELEMENT
#undef OUTSIDE
// i is the word of a pixel at p.
#define SRC_ELEMENT(p) WORD(SRC_T, src, (p) + 3 * i, 1, group_in - 4 * i)
#define OUTSIDE(in_depth) ((in_depth) ? border & word_mask(group_in - 4 * i) : 0)
#endif
#define TILE_LOAD_A(a, step)                                                                 \
  _Pragma("unroll") for (int q = 0; q < TILE_AQ; ++q) {                                      \
    int i = i0, t = t0, u = u0;                                                              \
    TILE_ELEMENT_T e[4];                                                                     \
    _Pragma("unroll") for (int j = 0; j < 4; ++j) {                                          \
      const int y = BORDER(in_y[q] + u * dilation_h, in_h);                                  \
      const int x = BORDER(in_x[q] + t * dilation_w, in_w);                                  \
      e[j] = OUTSIDE(u < filter_h);                                                          \
      if (TILE_HAS(q, TM) && u < filter_h && (uint)y < (uint)in_h && (uint)x < (uint)in_w) { \
        e[j] = SRC_ELEMENT((image[q] + y * in_w + x) * in_c + i);                            \
      }                                                                                      \
      if (++i == channels_in) {                                                              \
        i = 0;                                                                               \
        NEXT_TAP(t, u)                                                                       \
      }                                                                                      \
    }                                                                                        \
    a[q] = (QUAD_T)(e[0], e[1], e[2], e[3]);                                                 \
  }                                                                                          \
  NEXT_STEP
#endif

#endif

#define TILE_LOAD_B(b, step)                                                  \
  _Pragma("unroll") for (int q = 0; q < TILE_BQ; ++q) {                       \
    b[q] = (QUAD_T)(0);                                                       \
    if (TILE_HAS(q, TN) && (!TAIL || (step) + TILE_N4_K(q, TN) < depth)) {    \
      b[q] = LOAD4_ALIGNED(PACKED_T, packed, (step) * TN + TILE_QUAD(q) * 4); \
    }                                                                         \
  }
#define TILE_PUT_A(stage, a) TILE_PUT_K4(stage, TM, a, TILE_AQ)
#define TILE_PUT_B(stage, b) TILE_PUT_N4(stage, TN, b, TILE_BQ)

__kernel __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) void conv2d_implicit_gemm(
    __global const SRC_T *src, __global const PACKED_T *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM
#if SPLIT
    int splits,
    int chunk,
#endif
    int pixels, int panels, int group_in, int group_out, int in_h, int in_w, int in_c, int out_h,
    int out_w, int out_c, int filter_h, int filter_w, int stride_h, int stride_w, int dilation_h,
    int dilation_w, int top, int left
#if TILE_ARITH == 2
    ,
    int border, int b_zero
#endif
) {
  TILE_BEGIN
  const int panel = get_group_id(0), first_pixel = (int)get_group_id(1) * TM;
  const int channels_in = TILE_DEPTH(group_in);
  const int depth = filter_h * filter_w * channels_in;
#if SPLIT
  const int group = (int)get_group_id(2) / splits, split = (int)get_group_id(2) % splits;
  const int begin = split * chunk, end = min(begin + chunk, depth);
  dst += split * pixels * out_c;
#else
  const int group = get_group_id(2);
  const int begin = 0, end = depth;
#endif
  packed += (group * panels + panel) * depth * TN;
  src += group * group_in;
#if TILE_ARITH == 2 && GATHER != 4
  in_c /= 4;  // words, as channels_in
#endif

  const int k0 = TILE_K4_K(0);  // the same for all quads of the item
#if GATHER == 0
  int at[TILE_AQ];
#pragma unroll
  for (int q = 0; q < TILE_AQ; ++q) at[q] = (ROW_OF(q) - top * in_w) * in_c + k0;
#else
  int in_x[TILE_AQ], in_y[TILE_AQ], image[TILE_AQ];
#pragma unroll
  for (int q = 0; q < TILE_AQ; ++q) {
    const int pixel = ROW_OF(q);
    in_x[q] = pixel % out_w * stride_w - left;
    in_y[q] = pixel / out_w % out_h * stride_h - top;
    image[q] = pixel / out_w / out_h * in_h * in_w;
  }
  // Input channel and filter tap of the current step: those of its first element, or of the item's.
#if GATHER == 1
  const int first = begin;
#else
  const int first = begin + k0;
#endif
  int i0 = first % channels_in, t0 = first / channels_in % filter_w;
  int u0 = first / channels_in / filter_w;
#if GATHER == 1
  bool inside[TILE_AQ];
  int at[TILE_AQ];
  FIND_TAP
#endif
#endif

  TILE_PRODUCT(begin, end)
  TILE_STORE(first_pixel, pixels, panel * TN, group_out, out_c, group * group_out)
}
