// direct.cl - transposed convolution as in naive.cl; a work-item keeps PX pixels of one row x VW
//             channels in registers. The pixels are stride_w apart: they use the same filter columns
//
// Shapes    src: [n, in_h, in_w, in_c]; bias: [out_c]; dst: [n, out_h, out_w, out_c]
//           packed: [panels, filter_h * filter_w * in_c, VW] as conv2d/pack_weights.cl writes it,
//           followed at element `zeros_at` by the bytes of in_c zeros of type SRC_T
// Launch    axis 0: blocks of VW channels; axis 1: blocks of PX pixels, counted by phase (x % stride_w)
//           first; a work-item also takes the blocks one or more global sizes further on; axis 2:
//           the n * out_h rows. local = (WG_C, WG_X, 1)
// Macros    VW        4|8|16      channels of a work-item
//           PX        1..8        pixels of a work-item
//           WG_C, WG_X  1..64     size of a work-group
//           SRC_T, PACKED_T, DST_T   float|half, or char|uchar with QUANTIZED  element types
//           and those of common/epilogue.cl
// Numerics  products and sum in SUM_T, in the order of the filter taps, then input channels; the bias
//           is added last. Integers: zero points are subtracted one by one, because each phase has its
//           own taps
#include "common/vector_epilogue.cl"

#if QUANTIZED
#define LOAD_PIXEL(p, i) (LOAD(SRC_T, from[p], i) - zero[p])
#define LOAD_WEIGHTS(w, i) (LOAD_VEC(PACKED_T, w, i) - (VEC)(weights_zero))
#else
#define LOAD_PIXEL(p, i) LOAD(SRC_T, from[p], i)
#define LOAD_WEIGHTS(w, i) LOAD_VEC(PACKED_T, w, i)
#endif

__kernel __attribute__((reqd_work_group_size(WG_C, WG_X, 1))) void transpose_conv_direct(
    __global const SRC_T *src, __global const PACKED_T *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int blocks, int zeros_at, int in_h, int in_w, int in_c,
    int out_h, int out_w, int out_c, int filter_h, int filter_w, int stride_h, int stride_w,
    int top, int left, int src_zero, int weights_zero) {
  const int channel = get_global_id(0) * VW;
  if (channel >= out_c) return;
  const int row = get_global_id(2);
  const int y = row % out_h;
  // Pixels outside of src read their channels from here, so the loop needs no conditions.
  __global const SRC_T *zeros = (__global const SRC_T *)(packed + zeros_at);
  packed += channel * filter_h * filter_w * in_c;
  src += row / out_h * in_h * in_w * in_c;
  const int first_pixel = row * out_w;
  const int left_over = out_c - channel;

  for (int block = get_global_id(1); block < blocks; block += get_global_size(1)) {
    const int phase = block % stride_w;
    const int first = block / stride_w * PX;  // in units of stride_w
    VEC sum[PX];
#pragma unroll
    for (int p = 0; p < PX; ++p) sum[p] = (VEC)(0);

    for (int u = (y + top) % stride_h; u < filter_h; u += stride_h) {
      const int in_y = (y + top - u) / stride_h;
      if (in_y < 0 || in_y >= in_h) continue;
      for (int v = (phase + left) % stride_w; v < filter_w; v += stride_w) {
        const int in_x = (phase + left - v) / stride_w + first;
        __global const SRC_T *from[PX];
        SUM_T zero[PX];
#pragma unroll
        for (int p = 0; p < PX; ++p) {
          const bool inside = (uint)(in_x + p) < (uint)in_w;
          from[p] = inside ? src + (in_y * in_w + in_x + p) * in_c : zeros;
          zero[p] = inside ? src_zero : 0;
        }
        __global const PACKED_T *w = packed + (u * filter_w + v) * in_c * VW;
        for (int i = 0; i < in_c; ++i) {
          const VEC wi = LOAD_WEIGHTS(w, i * VW);
#pragma unroll
          for (int p = 0; p < PX; ++p) {
            const SUM_T xi = LOAD_PIXEL(p, i);
            sum[p] = MAD_VEC(wi, (VEC)(xi), sum[p]);
          }
        }
      }
    }

#pragma unroll
    for (int p = 0; p < PX; ++p) {
      const int x = phase + (first + p) * stride_w;
      if (x < out_w) {
        if (left_over >= VW) {
          const int at = RESULT_AT(first_pixel + x, channel, out_c);
          STORE_VEC(DST_T, dst, at, FINISH_SUM_VEC(sum[p], CHANNEL_VEC_AT(channel), at));
        } else {
          SUM_T lanes[VW];
          SPILL_VEC(sum[p], lanes);
          for (int j = 0; j < left_over; ++j) {
            const int at = RESULT_AT(first_pixel + x, channel + j, out_c);
            STORE(DST_T, dst, at, FINISH_SUM(lanes[j], CHANNEL_AT(channel + j), at));
          }
        }
      }
    }
  }
}
