// gemm.cl - transposed convolution as in naive.cl, as products of matrices, tiled in local memory. The
//           pixels of one phase (y % stride_h, x % stride_w) use the same filter taps, one per stride:
//           they are the rows of the left matrix, which is read from src on the fly
//
// Shapes    src: [n, in_h, in_w, in_c]; bias: [out_c]; dst: [n, out_h, out_w, out_c]
//           packed: [panels, filter_h * filter_w * in_c, TN] as conv2d/pack_weights.cl writes it
//           in_c is a multiple of 4
// Launch    one work-group of 256 per tile of TM pixels of one phase x TN channels:
//           global = (256 * ceil(n * phase_h * phase_w / TM), panels, stride_h * stride_w),
//           local = (256, 1, 1); phase_h = ceil(out_h / stride_h), phase_w likewise
// Macros    TM, TN  64|128         tile: pixels and output channels of a work-group
//           SRC_T, PACKED_T, DST_T float|half  element types
//           and those of common/epilogue.cl
// Numerics  products and sum in float, in the order of the filter taps, then input channels; the bias
//           is added last
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"

#define TK 16         // depth of a step
#define QM (TM / 64)  // groups of four pixels of a work-item
#define QN (TN / 64)  // groups of four channels of a work-item
#define ROW (TM + 4)  // row of the left tile: the padding spreads its writes over the banks

// Reads the tiles of input channels `channel` .. channel + TK - 1 and of tap (u, v) of the phase.
#define READ_STEP()                                                                              \
  do {                                                                                           \
    _Pragma("unroll") for (int q = 0; q < QM; ++q) {                                             \
      const int at_y = in_y[q] - u, at_x = in_x[q] - v;                                          \
      const bool inside = (uint)at_y < (uint)in_h && (uint)at_x < (uint)in_w;                    \
      a[q] = (float4)(0.0f);                                                                     \
      if (inside && channel + k0 < in_c) {                                                       \
        a[q] = LOAD4_ALIGNED(SRC_T, src, (image[q] + at_y * in_w + at_x) * in_c + channel + k0); \
      }                                                                                          \
    }                                                                                            \
    const int tap = (first_u + u * stride_h) * filter_w + first_v + v * stride_w;                \
    _Pragma("unroll") for (int q = 0; q < QN; ++q) {                                             \
      const int quad = item + q * 256;                                                           \
      const int i = channel + quad / (TN / 4);                                                   \
      b[q] = (float4)(0.0f);                                                                     \
      if (i < in_c) {                                                                            \
        b[q] = LOAD4_ALIGNED(PACKED_T, packed, (tap * in_c + i) * TN + quad % (TN / 4) * 4);     \
      }                                                                                          \
    }                                                                                            \
  } while (0)

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void transpose_conv_gemm(
    __global const SRC_T *src, __global const PACKED_T *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int phase_h, int phase_w, int in_h, int in_w,
    int in_c, int out_h, int out_w, int out_c, int filter_h, int filter_w, int stride_h,
    int stride_w, int top, int left) {
  LOCAL_ARRAY(float4, a_tile, TK * ROW / 4);  // [TK][ROW], pixels along the row
  LOCAL_ARRAY(float4, b_tile, TK * TN / 4);   // [TK][TN]
  __local float *a_elements = (__local float *)a_tile;

  const int item = get_local_id(0);
  const int panel = get_group_id(1);
  const int phase_y = (int)get_group_id(2) / stride_w, phase_x = (int)get_group_id(2) % stride_w;
  const int first_pixel = (int)get_group_id(0) * TM;
  packed += panel * filter_h * filter_w * in_c * TN;

  // The taps of the phase are first_u + u * stride_h; u = 0 reads row in_y of src, the others the
  // rows before it.
  const int first_u = (phase_y + top) % stride_h, first_v = (phase_x + left) % stride_w;
  const int taps_u = max((filter_h - first_u + stride_h - 1) / stride_h, 0);
  const int taps_v = max((filter_w - first_v + stride_w - 1) / stride_w, 0);
  const int k0 = item % (TK / 4) * 4;
  int in_x[QM], in_y[QM], image[QM];
#pragma unroll
  for (int q = 0; q < QM; ++q) {
    const int pixel = first_pixel + item / (TK / 4) + q * 64;
    in_x[q] = pixel % phase_w + (phase_x + left) / stride_w;
    in_y[q] = pixel < pixels ? pixel / phase_w % phase_h + (phase_y + top) / stride_h : INT_MIN / 2;
    image[q] = pixel < pixels ? pixel / phase_w / phase_h * in_h * in_w : 0;
  }

  float4 sum[QM * 4][QN];
#pragma unroll
  for (int r = 0; r < QM * 4; ++r) {
#pragma unroll
    for (int c = 0; c < QN; ++c) sum[r][c] = (float4)(0.0f);
  }

  const int row = item / 16, column = item % 16;
  const int steps_of_tap = (in_c + TK - 1) / TK;
  const int steps = taps_u * taps_v * steps_of_tap;
  int u = 0, v = 0, channel = 0;
  float4 a[QM], b[QN];
  if (steps > 0) READ_STEP();
  for (int step = 0; step < steps; ++step) {
    barrier(CLK_LOCAL_MEM_FENCE);  // the tiles of the previous step have been read
#pragma unroll
    for (int q = 0; q < QM; ++q) {
      const int at = k0 * ROW + item / (TK / 4) + q * 64;
      a_elements[at] = a[q].s0;
      a_elements[at + ROW] = a[q].s1;
      a_elements[at + 2 * ROW] = a[q].s2;
      a_elements[at + 3 * ROW] = a[q].s3;
    }
#pragma unroll
    for (int q = 0; q < QN; ++q) b_tile[item + q * 256] = b[q];
    barrier(CLK_LOCAL_MEM_FENCE);

    // The next step is loaded while this one is computed.
    channel += TK;
    const bool next_tap = channel >= in_c;
    channel = next_tap ? 0 : channel;
    v += next_tap ? 1 : 0;
    const bool next_row = v == taps_v;
    v = next_row ? 0 : v;
    u += next_row ? 1 : 0;
    if (step + 1 < steps) READ_STEP();

#pragma unroll
    for (int k = 0; k < TK; ++k) {
      float4 w[QN];
#pragma unroll
      for (int c = 0; c < QN; ++c) w[c] = b_tile[k * (TN / 4) + c * 16 + column];
#pragma unroll
      for (int q = 0; q < QM; ++q) {
        const float4 x = a_tile[k * (ROW / 4) + q * 16 + row];
#pragma unroll
        for (int c = 0; c < QN; ++c) {
          sum[q * 4][c] = mad((float4)(x.s0), w[c], sum[q * 4][c]);
          sum[q * 4 + 1][c] = mad((float4)(x.s1), w[c], sum[q * 4 + 1][c]);
          sum[q * 4 + 2][c] = mad((float4)(x.s2), w[c], sum[q * 4 + 2][c]);
          sum[q * 4 + 3][c] = mad((float4)(x.s3), w[c], sum[q * 4 + 3][c]);
        }
      }
    }
  }

#pragma unroll
  for (int c = 0; c < QN; ++c) {
    const int o = panel * TN + (c * 16 + column) * 4;
    const int left_over = out_c - o;
    const CHANNEL4_T c4 = CHANNEL4_SOME(o, left_over);
#pragma unroll
    for (int r = 0; r < QM * 4; ++r) {
      const int pixel = first_pixel + (r / 4 * 16 + row) * 4 + r % 4;
      const int x = pixel % phase_w * stride_w + phase_x;
      const int y = pixel / phase_w % phase_h * stride_h + phase_y;
      if (pixel < pixels && x < out_w && y < out_h) {
        const int image_at = pixel / phase_w / phase_h * out_h;
        const int at = RESULT_AT((image_at + y) * out_w + x, o, out_c);
        if (left_over > 3) {
          STORE4(DST_T, dst, at, FINISH_SUM4(sum[r][c], c4, at));
        } else {
          const float4 v = SUM_LANE4(sum[r][c], c4, at);
          if (left_over > 0) STORE(DST_T, dst, at, FINISH_SUM_LANE(v.s0, c4, 0, at));
          if (left_over > 1) STORE(DST_T, dst, at + 1, FINISH_SUM_LANE(v.s1, c4, 1, at + 1));
          if (left_over > 2) STORE(DST_T, dst, at + 2, FINISH_SUM_LANE(v.s2, c4, 2, at + 2));
        }
      }
    }
  }
}
