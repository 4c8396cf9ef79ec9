// fused.cl - depthwise convolution with a depth multiplier of 1, then a 1x1 convolution:
//            mid[n, y, x, c] = depth_act(depth_bias[c] + sum over u, v of src[n, y * STRIDE_H - top + u,
//            x * STRIDE_W - left + v, c] * depth_weights[u, v, c]), with src zero or
//            mirrored outside of the image;
//            dst[n, y, x, o] = act(bias[o] + residual + sum over c of mid[n, y, x, c] * weights[c, o]).
//            A work-group computes mid for its pixels in local memory and multiplies it at once
//
// Shapes    src: [n, in_h, in_w, channels]; depth_weights: [1, FILTER_H, FILTER_W, channels];
//           depth_bias: [channels]; packed: [panels, channels, TN] as conv2d/pack_weights.cl writes it;
//           bias: [out_c]; dst: [n, out_h, out_w, out_c]; channels is a multiple of 4
// Launch    a work-group per tile of TILE_W x TILE_H pixels x TN channels: global =
//           (ITEMS * n * tiles_y * tiles_x, panels, 1), local = (ITEMS, 1, 1)
// Macros    TILE_W, TILE_H  1..  pixels of a work-group: TILE_W is a multiple of 4, TILE_H at most 16
//           TN        32|64|128     output channels of a work-group
//           ITEMS     64|128|256    work-items: TN / 4 x a divisor of the tile's pixels
//           CHUNK     multiple of 4 channels of mid in local memory at a time
//           FILTER_H, FILTER_W  1..5  of the depthwise convolution, not dilated
//           STRIDE_H, STRIDE_W  1|2   likewise
//           DEPTH_BIAS     0|1      1: there is a parameter depth_bias
//           DEPTH_ACT      0..13    activation of mid, see common/activation.cl
//           SRC_T, DEPTH_T, DEPTH_BIAS_T, PACKED_T, DST_T  float|half  element types
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sums in float, in the order of the filter taps and of the channels; mid is not
//           rounded to half; biases are added last
#include "common/border.cl"
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"

#define PX 4  // pixels of a row filtered by an item at a time
#define COLUMNS ((PX - 1) * STRIDE_W + FILTER_W)
#define TM (TILE_W * TILE_H)           // pixels of a work-group
#define GX (TN / 4)                    // items along the channels
#define GY (ITEMS / GX)                // items along the pixels
#define RM (TM / GY)                   // pixels of an item
#define PITCH (CHUNK / 4 + 1)          // row of `mid` in vectors, padded
#define UNITS (TM / PX * (CHUNK / 4))  // PX pixels x 4 channels each

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void separable_conv2d_fused(
    __global const SRC_T *src, __global const DEPTH_T *depth_weights,
#if DEPTH_BIAS
    __global const DEPTH_BIAS_T *depth_bias,
#endif
    __global const PACKED_T *packed, BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int tiles_x,
    int tiles_y, int in_h, int in_w, int channels, int out_h, int out_w, int out_c, int top,
    int left) {
  LOCAL_ARRAY(float4, mid, TM * PITCH);  // [TM][CHUNK]
  const int item = get_local_id(0);
  const int tile = get_group_id(0), panel = get_group_id(1);
  const int first_x = tile % tiles_x * TILE_W, first_y = tile / tiles_x % tiles_y * TILE_H;
  const int n = tile / tiles_x / tiles_y;
  src += n * in_h * in_w * channels;
  packed += panel * channels * TN;
  const int column = item % GX, row = item / GX;

  float4 sum[RM];
#pragma unroll
  for (int r = 0; r < RM; ++r) sum[r] = (float4)(0.0f);

  for (int begin = 0; begin < channels; begin += CHUNK) {
    const int quads = min(CHUNK, channels - begin) / 4;
    for (int unit = item; unit < UNITS; unit += ITEMS) {
      const int quad = unit % (CHUNK / 4), block = unit / (CHUNK / 4);
      if (quad >= quads) continue;
      const int c = begin + quad * 4;
      const int x0 = block % (TILE_W / PX) * PX, y0 = block / (TILE_W / PX);
      const int in_x = (first_x + x0) * STRIDE_W - left, in_y = (first_y + y0) * STRIDE_H - top;
      float4 part[PX];
#pragma unroll
      for (int p = 0; p < PX; ++p) part[p] = (float4)(0.0f);
#pragma unroll
      for (int u = 0; u < FILTER_H; ++u) {
        const int at_y = BORDER(in_y + u, in_h);
        const bool inside = (uint)at_y < (uint)in_h;
        const int from = at_y * in_w * channels + c;
        float4 pixel[COLUMNS];
#pragma unroll
        for (int t = 0; t < COLUMNS; ++t) {
          const int at_x = BORDER(in_x + t, in_w);
          pixel[t] = (float4)(0.0f);
          if (inside && (uint)at_x < (uint)in_w) {
            pixel[t] = LOAD4_ALIGNED(SRC_T, src, from + at_x * channels);
          }
        }
#pragma unroll
        for (int v = 0; v < FILTER_W; ++v) {
          const float4 w = LOAD4_ALIGNED(DEPTH_T, depth_weights, (u * FILTER_W + v) * channels + c);
#pragma unroll
          for (int p = 0; p < PX; ++p) part[p] = mad(w, pixel[p * STRIDE_W + v], part[p]);
        }
      }
      float4 b = (float4)(0.0f);
#if DEPTH_BIAS
      b = LOAD4_ALIGNED(DEPTH_BIAS_T, depth_bias, c);
#endif
#pragma unroll
      for (int p = 0; p < PX; ++p) {
        const float4 total = part[p] + b;
        mid[(y0 * TILE_W + x0 + p) * PITCH + quad] = ACTIVATION(DEPTH_ACT, total);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    __global const PACKED_T *w = packed + begin * TN;
#pragma unroll 2
    for (int quad = 0; quad < quads; ++quad) {
      float4 w4[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        w4[k] = LOAD4_ALIGNED(PACKED_T, w, (quad * 4 + k) * TN + column * 4);
      }
#pragma unroll
      for (int r = 0; r < RM; ++r) {
        const float4 x = mid[(row * RM + r) * PITCH + quad];
        sum[r] = mad((float4)(x.s0), w4[0], sum[r]);
        sum[r] = mad((float4)(x.s1), w4[1], sum[r]);
        sum[r] = mad((float4)(x.s2), w4[2], sum[r]);
        sum[r] = mad((float4)(x.s3), w4[3], sum[r]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const int o = panel * TN + column * 4;
  const int left_over = out_c - o;
  const CHANNEL4_T c4 = CHANNEL4_SOME(o, left_over);
#pragma unroll
  for (int r = 0; r < RM; ++r) {
    const int x = first_x + (row * RM + r) % TILE_W, y = first_y + (row * RM + r) / TILE_W;
    if (x < out_w && y < out_h) {
      const int at = RESULT_AT((n * out_h + y) * out_w + x, o, out_c);
      if (left_over > 3) {
        STORE4(DST_T, dst, at, FINISH_SUM4(sum[r], c4, at));
      } else {
        const float4 v = SUM_LANE4(sum[r], c4, at);
        if (left_over > 0) STORE(DST_T, dst, at, FINISH_SUM_LANE(v.s0, c4, 0, at));
        if (left_over > 1) STORE(DST_T, dst, at + 1, FINISH_SUM_LANE(v.s1, c4, 1, at + 1));
        if (left_over > 2) STORE(DST_T, dst, at + 2, FINISH_SUM_LANE(v.s2, c4, 2, at + 2));
      }
    }
  }
}
