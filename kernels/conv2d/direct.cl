// direct.cl - 2-D convolution as in naive.cl; a work-item keeps PX pixels x (OV * VW) channels in
//             registers
//
// Shapes    src: [n, in_h, in_w, in_c]; bias: [out_c]; dst: [pixels, out_c], pixels = n * out_h * out_w
//           packed: [groups, panels, filter_h * filter_w * group_in, PANEL] as pack_weights.cl writes
//           it, followed at element `zeros_at` by the bytes of filter_w * group_in zeros of type SRC_T;
//           of words: as pack_words.cl writes it
// Launch    axis 0: blocks of OV * VW channels of one group; axis 1: blocks of `tiles` * PX
//           consecutive pixels; axis 2: groups. local = (WG_C, WG_P, 1)
// Macros    VW        1|4|8|16        channels of one vector; 1 for int16
//           OV        1..4            vectors of a work-item; OV * VW divides PANEL
//           PX        1..16           pixels of a tile
//           KV        1|4             input channels, or words of four, read at once; divides the
//                                     number of them in a group
//           WORDS     0..2            1: int8, as words of four channels; 2: likewise, and group_in is not
//                                     a multiple of four. VW is 4 then
//           A_SUMS if WORDS  0|1      1: weights have the zero point b_zero
//           DOT8 if WORDS    0..3     see common/dot8.cl
//           PANEL     multiple of 4   row length of packed
//           WG_C, WG_P  1..64         size of a work-group
//           SRC_T, PACKED_T, DST_T    float|half; char|uchar, int, char|uchar; short, char, short;
//                                     PACKED_T also weight8, see common/types.cl
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sum in float, in the order of the filter taps, then input channels; the bias
//           is added last. Integers: exact
#include "common/border.cl"
#include "common/vector_epilogue.cl"

#if WORDS
#include "common/dot8.cl"
#include "common/word.cl"
#define ELEMENT_T int
#define ELEMENT4_T int4
#define LOAD_QUAD(p, i) WORD4_ALIGNED(SRC_T, p, (i) * 4)
#if WORDS == 1
#define LOAD_ELEMENT(p, i) WORD_ALIGNED(SRC_T, p, (i) * 4)
#else
#define LOAD_ELEMENT(p, i) WORD(SRC_T, p, (i) * 4, 1, group_in - (i) * 4)
#endif
#define ADD_PRODUCT(w, x, s) DOT8_ADD4(x, w, s)
#else
#define A_SUMS 0
#define ELEMENT_T SUM_T
#define ELEMENT4_T CLGPU_CAT(ARITH(SRC_T), 4)
#define LOAD_QUAD(p, i) LOAD4(SRC_T, p, i)
#define LOAD_ELEMENT(p, i) LOAD(SRC_T, p, i)
#define ADD_PRODUCT(w, x, s) MAD_VEC(w, (VEC)(x), s)
#endif
#if A_SUMS
#define ADD_TO_ROW(x, s) s = DOT8_ADD(x, 0x01010101, s)
#else
#define ADD_TO_ROW(x, s)
#endif

// sum[p][v] += w[v] * x_p for every pixel p of the tile, X(p) being its input element.
#define ACCUMULATE(w, k, X)                                \
  do {                                                     \
    VEC w_[OV];                                            \
    _Pragma("unroll") for (int v = 0; v < OV; ++v) {       \
      w_[v] = LOAD_VEC(PACKED_T, w, (k) * PANEL + v * VW); \
    }                                                      \
    _Pragma("unroll") for (int p = 0; p < PX; ++p) {       \
      const ELEMENT_T x_ = X(p);                           \
      ADD_TO_ROW(x_, x_sum[p]);                            \
      _Pragma("unroll") for (int v = 0; v < OV; ++v) {     \
        sum[p][v] = ADD_PRODUCT(w_[v], x_, sum[p][v]);     \
      }                                                    \
    }                                                      \
  } while (0)

__kernel __attribute__((reqd_work_group_size(WG_C, WG_P, 1))) void conv2d_direct(
    __global const SRC_T *src, __global const PACKED_T *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int tiles, int panels, int zeros_at,
    int group_in, int group_out, int in_h, int in_w, int in_c, int out_h, int out_w, int out_c,
    int filter_h, int filter_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int top,
    int left
#if WORDS
    ,
    int b_zero
#endif
) {
  const int channel = get_global_id(0) * OV * VW;  // first one, within the group
  const int group = get_global_id(2);
  if (channel >= group_out) return;
  // Filter rows outside of src are read from here, so the loops need no conditions.
  __global const SRC_T *zeros = (__global const SRC_T *)(packed + zeros_at);
  const int elements_in = WORDS ? (group_in + 3) / 4 : group_in;
  const int depth = filter_h * filter_w * elements_in;
  packed += (group * panels + channel / PANEL) * depth * PANEL + channel % PANEL;
  src += group * group_in;
  const int first_channel = group * group_out + channel;

  for (int tile = 0; tile < tiles; ++tile) {
    const int first = ((int)get_global_id(1) * tiles + tile) * PX;
    if (first >= pixels) return;

    int x = first % out_w, y = first / out_w % out_h, n = first / out_w / out_h;
    int in_x[PX], in_y[PX], image[PX];
#pragma unroll
    for (int p = 0; p < PX; ++p) {
      const bool inside = first + p < pixels;
      in_x[p] = x * stride_w - left;
      in_y[p] = inside ? y * stride_h - top : INT_MIN / 2;
      image[p] = n * in_h * in_w;
      const bool wrap_x = ++x == out_w;
      x = wrap_x ? 0 : x;
      y += wrap_x ? 1 : 0;
      const bool wrap_y = y == out_h;
      y = wrap_y ? 0 : y;
      n += wrap_y ? 1 : 0;
    }

    VEC sum[PX][OV];
#pragma unroll
    for (int p = 0; p < PX; ++p) {
#pragma unroll
      for (int v = 0; v < OV; ++v) sum[p][v] = (VEC)(0);
    }
#if A_SUMS
    int x_sum[PX] = {0};
#endif

    // Few channels make short runs; a filter row inside the image's columns is a single run.
    bool whole_rows = WORDS != 2 && group_in <= 8 && dilation_w == 1 && group_in == in_c;
#pragma unroll
    for (int p = 0; p < PX; ++p) {
      whole_rows = whole_rows && in_x[p] >= 0 && in_x[p] + filter_w <= in_w;
    }
    const int runs = whole_rows ? 1 : filter_w;  // of a filter row
    const int run = whole_rows ? filter_w * elements_in : elements_in;

    __global const PACKED_T *w = packed;
    for (int u = 0; u < filter_h; ++u) {
      for (int t = 0; t < runs; ++t) {
        __global const SRC_T *from[PX];
#pragma unroll
        for (int p = 0; p < PX; ++p) {
          const int at_y = BORDER(in_y[p] + u * dilation_h, in_h);
          const int at_x = BORDER(in_x[p] + t * dilation_w, in_w);
          const bool inside = (uint)at_y < (uint)in_h && (uint)at_x < (uint)in_w;
          from[p] = inside ? src + (image[p] + at_y * in_w + at_x) * in_c : zeros;
        }
        for (int i = 0; i < run; i += KV) {
#if KV == 4
          ELEMENT4_T x4[PX];
#pragma unroll
          for (int p = 0; p < PX; ++p) x4[p] = LOAD_QUAD(from[p], i);
#define X0(p) x4[p].s0
#define X1(p) x4[p].s1
#define X2(p) x4[p].s2
#define X3(p) x4[p].s3
          ACCUMULATE(w, 0, X0);
          ACCUMULATE(w, 1, X1);
          ACCUMULATE(w, 2, X2);
          ACCUMULATE(w, 3, X3);
#else
#define X(p) LOAD_ELEMENT(from[p], i)
          ACCUMULATE(w, 0, X);
#endif
          w += KV * PANEL;
        }
      }
    }

#if A_SUMS
#pragma unroll
    for (int p = 0; p < PX; ++p) {
#pragma unroll
      for (int v = 0; v < OV; ++v) sum[p][v] -= b_zero * x_sum[p];
    }
#endif
#pragma unroll
    for (int v = 0; v < OV; ++v) {
      const int left_over = group_out - channel - v * VW;  // channels from here to the group's end
      if (left_over <= 0) break;
      const int o = first_channel + v * VW;
      if (left_over >= VW) {
        const CHANNEL_VEC_T c = CHANNEL_VEC_AT(o);
#pragma unroll
        for (int p = 0; p < PX; ++p) {
          const int at = RESULT_AT(first + p, o, out_c);
          if (first + p < pixels) STORE_VEC(DST_T, dst, at, FINISH_SUM_VEC(sum[p][v], c, at));
        }
      } else {
#pragma unroll
        for (int p = 0; p < PX; ++p) {
          SUM_T lanes[VW];
          SPILL_VEC(sum[p][v], lanes);
          for (int j = 0; j < left_over && first + p < pixels; ++j) {
            const int at = RESULT_AT(first + p, o + j, out_c);
            STORE(DST_T, dst, at, FINISH_SUM(lanes[j], CHANNEL_AT(o + j), at));
          }
        }
      }
    }
  }
}
