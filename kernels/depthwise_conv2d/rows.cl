// rows.cl - depthwise convolution of 8-bit integers as in naive.cl with a depth multiplier of 1, for CPUs; a work-item
//           walks block_rows rows with VW channels, whose filters and scales stay in registers
//
// Shapes    src: [n, in_h, in_w, out_c]; weights: [1, FILTER_H, FILTER_W, out_c]; bias: [out_c]
//           dst: [n, out_h, out_w, out_c]; out_c is a multiple of VW
// Launch    axis 0: channel blocks; a work-item also takes the blocks one or more global sizes further
//           on; axis 1: n * row_blocks, row_blocks = ceil(out_h / block_rows). local = (1, 1)
// Macros    VW        1|4|8|16     channels of a work-item
//           PX        1..8         neighbouring pixels computed at a time
//           PY        1..8         rows computed at a time
//           FILTER_H, FILTER_W  1..7  size of the filter
//           STRIDE_H, STRIDE_W, DILATION_H, DILATION_W  1..  of the convolution
//           QUICK     0|1          1 (not with VW 1): requantise with FINISH_QUICK4 .. 16 of common/epilogue.cl
//           WEIGHTS_SHIFTED  0|1  1: weights_zero may differ from 0
//           SRC_T, WEIGHTS_T, DST_T  char|uchar  element types
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl: QUANTIZED 1, SUM_T int
// Numerics  exact: products and sums in float are integers below 2^24; values outside of src are
//           src_zero
#include "common/border.cl"
#include "common/vector_epilogue.cl"
#if QUANTIZED != 1
#error "QUANTIZED has to be 1"
#endif

// Rows and columns of the image that a block reads.
#define ROWS ((PY - 1) * STRIDE_H + (FILTER_H - 1) * DILATION_H + 1)
#define COLUMNS ((PX - 1) * STRIDE_W + (FILTER_W - 1) * DILATION_W + 1)

// Floats hold integers below 2^24 exactly, and CPUs multiply them faster.
#if VW == 1
#define FLOATS float
#else
#define FLOATS CLGPU_CAT(float, VW)
#endif
#define LOAD_FLOATS(T, p, i) CLGPU_CAT(convert_, FLOATS)(LOAD_VEC(T, p, i))
#define INTEGERS(sum) CLGPU_CAT(convert_, VEC)(sum)
#if QUICK
#define FINISH_FLOATS(sum, at) CLGPU_CAT(FINISH_QUICK, VW)(INTEGERS(sum), channel, at)
#else
#define FINISH_FLOATS(sum, at) FINISH_SUM_VEC(INTEGERS(sum), channel, at)
#endif

// Sums and stores PY x PX pixels from (y, x) on. LOAD_COLUMN(t): column t of their input, in row in_y;
// HAS(q, p): whether pixel (y + q, x + p) exists. The compiler decides all other conditions except the
// one on in_y.
#define FILTER_BLOCK(LOAD_COLUMN, HAS)                                                       \
  do {                                                                                       \
    FLOATS sum[PY][PX];                                                                      \
    _Pragma("unroll") for (int q = 0; q < PY; ++q) {                                         \
      _Pragma("unroll") for (int p = 0; p < PX; ++p) sum[q][p] = (FLOATS)(0);                \
    }                                                                                        \
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                       \
      FLOATS pixel[COLUMNS];                                                                 \
      const int in_y = BORDER(first_y + r, in_h);                                            \
      if ((uint)in_y < (uint)in_h) {                                                         \
        _Pragma("unroll") for (int t = 0; t < COLUMNS; ++t) pixel[t] = LOAD_COLUMN(t);       \
      } else {                                                                               \
        _Pragma("unroll") for (int t = 0; t < COLUMNS; ++t) pixel[t] = OUTSIDE;              \
      }                                                                                      \
      _Pragma("unroll") for (int q = 0; q < PY; ++q) {                                       \
        _Pragma("unroll") for (int u = 0; u < FILTER_H; ++u) {                               \
          if (q * STRIDE_H + u * DILATION_H != r) continue;                                  \
          _Pragma("unroll") for (int p = 0; p < PX; ++p) {                                   \
            _Pragma("unroll") for (int v = 0; v < FILTER_W; ++v) {                           \
              sum[q][p] =                                                                    \
                  mad(w[u * FILTER_W + v], pixel[p * STRIDE_W + v * DILATION_W], sum[q][p]); \
            }                                                                                \
          }                                                                                  \
        }                                                                                    \
      }                                                                                      \
    }                                                                                        \
    _Pragma("unroll") for (int q = 0; q < PY; ++q) {                                         \
      _Pragma("unroll") for (int p = 0; p < PX; ++p) {                                       \
        const int at = RESULT_AT(first_pixel + q * out_w + x + p, c, out_c);                 \
        if (HAS(q, p)) STORE_VEC(DST_T, dst, at, FINISH_FLOATS(sum[q][p], at));              \
      }                                                                                      \
    }                                                                                        \
  } while (0)

#define OUTSIDE (FLOATS)(src_zero)
#define INNER_COLUMN(t) LOAD_FLOATS(SRC_T, src, in_y *in_row + (first_x + (t)) * out_c + c)
#define EDGE_COLUMN(t) \
  (column[t] < 0 ? OUTSIDE : LOAD_FLOATS(SRC_T, src, in_y * in_row + column[t] * out_c + c))
#define HAS_ALL(q, p) true
#define HAS_SOME(q, p) (y + (q) < end_y && x + (p) < out_w)

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void depthwise_conv2d_rows(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int row_blocks, int block_rows, int in_h, int in_w,
    int out_h, int out_w, int out_c, int top, int left, int src_zero, int weights_zero) {
  const int block = get_global_id(1), image = block / row_blocks;
  const int begin_y = block % row_blocks * block_rows, end_y = min(begin_y + block_rows, out_h);
  const int in_row = in_w * out_c;
  src += image * in_h * in_row;

  for (int c = get_global_id(0) * VW; c < out_c; c += get_global_size(0) * VW) {
    FLOATS w[FILTER_H * FILTER_W];
#pragma unroll
    for (int t = 0; t < FILTER_H * FILTER_W; ++t) {
      w[t] = LOAD_FLOATS(WEIGHTS_T, weights, t * out_c + c);
#if WEIGHTS_SHIFTED
      w[t] -= (FLOATS)(weights_zero);
#endif
    }
    // Member by member: Oclgrind cannot run the code that clang makes of a returned struct in such loops.
    CHANNEL_VEC_T channel;
    channel.start = LOAD_VEC(int, channels, c);
    channel.multiplier = LOAD_VEC(int, channels, channel_pitch + c);
    channel.shift = LOAD_VEC(int, channels, 2 * channel_pitch + c);

    for (int y = begin_y; y < end_y; y += PY) {
      const int first_y = y * STRIDE_H - top, first_pixel = (image * out_h + y) * out_w;
      const bool whole = y + PY <= end_y;
      for (int x = 0; x < out_w; x += PX) {
        const int first_x = x * STRIDE_W - left;
        if (whole && first_x >= 0 && first_x + COLUMNS <= in_w && x + PX <= out_w) {
          FILTER_BLOCK(INNER_COLUMN, HAS_ALL);
        } else {
          int column[COLUMNS];
#pragma unroll
          for (int t = 0; t < COLUMNS; ++t) {
            const int in_x = BORDER(first_x + t, in_w);
            column[t] = (uint)in_x < (uint)in_w ? in_x : -1;
          }
          FILTER_BLOCK(EDGE_COLUMN, HAS_SOME);
        }
      }
    }
  }
}
