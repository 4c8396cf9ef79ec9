// blocked.cl - depthwise convolution as in naive.cl with a depth multiplier of 1; a work-item keeps PX
//              pixels x PY rows x VW channels in registers and reads no input pixel twice
//
// Shapes    src: [n, in_h, in_w, out_c]; weights: [1, FILTER_H, FILTER_W, out_c]; bias: [out_c]
//           dst: [n, out_h, out_w, out_c]; out_c is a multiple of VW
// Launch    axis 0: channel blocks; axis 1: blocks of PX pixels of a row; along both, a work-item
//           also takes the blocks one or more global sizes further on; axis 2: n * row_blocks,
//           row_blocks = ceil(out_h / PY). local = (WG_C, WG_X, 1)
// Macros    VW        1|4|8|16     channels of a work-item
//           PX        1..8         pixels of a work-item
//           PY        1..8         rows of a work-item
//           INTERIOR  0|1          1: a separate path, without conditions, for pixels whose filter lies
//                                  inside of the image's columns
//           FILTER_H, FILTER_W  1..7  size of the filter
//           STRIDE_H, STRIDE_W, DILATION_H, DILATION_W  1..  of the convolution
//           WG_C, WG_X  1..64      size of a work-group
//           ALIGNED   0|1          1: every pixel of dst begins at a multiple of VW
//           WEIGHTS_SHIFTED  0|1  1: weights_zero may differ from 0
//           SRC_T, WEIGHTS_T, DST_T  float|half, or char|uchar with QUANTIZED  element types
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sum in SUM_T, in the order of the filter taps; the bias is added last. Integers:
//           values outside of src are src_zero
#include "common/border.cl"
#include "common/vector_epilogue.cl"

#if ALIGNED
#define STORE_RESULT(at, v) STORE_VEC_ALIGNED(DST_T, dst, at, v)
#else
#define STORE_RESULT(at, v) STORE_VEC(DST_T, dst, at, v)
#endif

#if WEIGHTS_SHIFTED
#define LOAD_WEIGHTS(at) (LOAD_VEC_ALIGNED(WEIGHTS_T, weights, at) - (VEC)(weights_zero))
#else
#define LOAD_WEIGHTS(at) LOAD_VEC_ALIGNED(WEIGHTS_T, weights, at)
#endif
// If the compiler knows that the numbers are small, it uses faster products.
#if QUANTIZED
#define OUTSIDE (VEC)((SRC_T)src_zero)
#else
#define OUTSIDE (VEC)(0)
#endif

// Rows and columns of the image that a block reads.
#define ROWS ((PY - 1) * STRIDE_H + (FILTER_H - 1) * DILATION_H + 1)
#define COLUMNS ((PX - 1) * STRIDE_W + (FILTER_W - 1) * DILATION_W + 1)

__kernel __attribute__((reqd_work_group_size(WG_C, WG_X, 1))) void depthwise_conv2d_blocked(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int row_blocks, int in_h, int in_w, int out_h, int out_w,
    int out_c, int top, int left, int src_zero, int weights_zero) {
  const int block = get_global_id(2);
  const int y = block % row_blocks * PY, first_y = y * STRIDE_H - top;
  src += block / row_blocks * in_h * in_w * out_c;
  const int first_pixel = (block / row_blocks * out_h + y) * out_w;

  for (int x = get_global_id(1) * PX; x < out_w; x += get_global_size(1) * PX) {
    const int first_x = x * STRIDE_W - left;
#if INTERIOR
    const bool interior = first_x >= 0 && first_x + COLUMNS <= in_w;
#endif
    for (int c = get_global_id(0) * VW; c < out_c; c += get_global_size(0) * VW) {
      VEC w[FILTER_H * FILTER_W];
#pragma unroll
      for (int t = 0; t < FILTER_H * FILTER_W; ++t) {
        w[t] = LOAD_WEIGHTS(t * out_c + c);
      }
      VEC sum[PY][PX];
#pragma unroll
      for (int q = 0; q < PY; ++q) {
#pragma unroll
        for (int p = 0; p < PX; ++p) sum[q][p] = (VEC)(0);
      }

      // The compiler decides all conditions on loop variables.
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        VEC pixel[COLUMNS];
        const int in_y = BORDER(first_y + r, in_h);
        const bool inside = (uint)in_y < (uint)in_h;
        const int from = in_y * in_w * out_c + c;
#if INTERIOR
        if (inside && interior) {
#pragma unroll
          for (int t = 0; t < COLUMNS; ++t) {
            pixel[t] = LOAD_VEC_ALIGNED(SRC_T, src, from + (first_x + t) * out_c);
          }
        } else
#endif
        {
#pragma unroll
          for (int t = 0; t < COLUMNS; ++t) {
            const int in_x = BORDER(first_x + t, in_w);
            pixel[t] = OUTSIDE;
            if (inside && (uint)in_x < (uint)in_w) {
              pixel[t] = LOAD_VEC_ALIGNED(SRC_T, src, from + in_x * out_c);
            }
          }
        }
#pragma unroll
        for (int q = 0; q < PY; ++q) {
#pragma unroll
          for (int u = 0; u < FILTER_H; ++u) {
            if (q * STRIDE_H + u * DILATION_H != r) continue;
#pragma unroll
            for (int p = 0; p < PX; ++p) {
#pragma unroll
              for (int v = 0; v < FILTER_W; ++v) {
                sum[q][p] =
                    MAD_VEC(w[u * FILTER_W + v], pixel[p * STRIDE_W + v * DILATION_W], sum[q][p]);
              }
            }
          }
        }
      }

      const CHANNEL_VEC_T channel = CHANNEL_VEC_AT(c);
#pragma unroll
      for (int q = 0; q < PY; ++q) {
#pragma unroll
        for (int p = 0; p < PX; ++p) {
          const int at = RESULT_AT(first_pixel + q * out_w + x + p, c, out_c);
          if (y + q < out_h && x + p < out_w) {
            STORE_RESULT(at, FINISH_SUM_VEC(sum[q][p], channel, at));
          }
        }
      }
    }
  }
}
