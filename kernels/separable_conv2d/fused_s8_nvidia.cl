// fused_s8_nvidia.cl - depthwise convolution of int8 with a depth multiplier of 1, then a 1x1 convolution on
//                      NVIDIA's tensor cores: mid[n, y, x, c] = requantised sum over u, v of
//                      src[n, y * stride_h - top + u, x * stride_w - left + v, c] * depth_weights[u, v, c],
//                      dst[n, y, x, o] = requantised sum over c of mid[n, y, x, c] * weights[o, c].
//                      A work-group computes mid for its pixels in local memory and multiplies it at once
//
// Shapes    src: [n, in_h, in_w, in_c]; depth_packed: [FILTER_H, in_c] words; the FILTER_W weights of a row of a
//           channel are in the lowest bytes, the others are zero; depth_channels: [4, depth_pitch], see
//           common/requantize.cl; packed: as tensor_gemm/pack_nvidia.cl writes it with TK 32 and
//           BLOCKS 2 if NB is 2, else 4; dst: [pixels, out_c], pixels = n * out_h * out_w;
//           places: TM, mid: TM rows of ceil(in_c / 32) * 32 + 16 bytes; outside: the zero point of src in
//           four bytes; in_c is a multiple of 4; out_c and the start of each pixel of dst are multiples of 8
// Launch    one work-group per TM pixels x TN = WARPS * NB * 8 output channels (a panel):
//           global = (tiles * panels * items), local = (items), items = WARPS * 32; `width`: items
//           along the channels of mid, a power of two, at most `items`
// Macros    TM        16..64  pixels of a work-group
//           WARPS     4|8     warps of a work-group, each with its own channels
//           NB        2|4|8   blocks of 8 output channels of a warp
//           FILTER_H  1..5    rows of the depthwise filter
//           FILTER_W  1..4    its columns
//           MMA_TYPE  2       int8
//           DST_T     char    element type of dst; and those of common/epilogue.cl
// Numerics  exact
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"

#define ITEMS (WARPS * 32)
#define TN (WARPS * NB * 8)
#define MB (TM / 16)
#if NB == 2
#define BLOCKS 2  // blocks whose channels interleave: a lane has 2 * BLOCKS neighbouring channels
#else
#define BLOCKS 4
#endif
#define AHEAD (NB == 8 ? 2 : 4)  // steps of 32 channels whose right operands are read at once

static inline uint permuted(uint a, uint b, uint bytes) {
  uint d;
  __asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(bytes));
  return d;
}
static inline int dot4(uint a, uint b, int sum) {
  __asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}

// Right operands of the steps from `step` on.
#define READ_RIGHT(b, step)                                                      \
  _Pragma("unroll") for (int s = 0; s < AHEAD; ++s) {                            \
    _Pragma("unroll") for (int n = 0; n < NB / 2; ++n) {                         \
      if ((step) + s < steps) b[s][n] = right[((step) + s) * (TN * 2) + n * 32]; \
    }                                                                            \
  }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void separable_conv2d_fused_s8(
    __global const char *src, __global const uint *depth_packed, __global const int *depth_channels,
    int depth_pitch, int mid_zero, int mid_low, int mid_high, __global const uint4 *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM __local uint4 *mid, int pixels, int panels, int width,
    int in_h, int in_w, int in_c, int out_h, int out_w, int out_c, int stride_h, int stride_w,
    int top, int left, int outside) {
  LOCAL_ARRAY(int4, places,
              TM);  // top row and left column of a pixel's window, and where it begins in src

  const int item = get_local_id(0), lane = item % 32, warp = item / 32;
  const int tile = (int)get_group_id(0) / panels, panel = (int)get_group_id(0) - tile * panels;
  const int steps = (in_c + 31) / 32, pitch = steps * 32 + 16;  // bytes: rows begin in other banks
  __global const uint4 *right = packed + (size_t)panel * steps * (TN * 2) + warp * (NB * 16) + lane;

  uint4 b[AHEAD][NB / 2], next[AHEAD][NB / 2];
  READ_RIGHT(next, 0);

  if (item < TM) {
    const int pixel = min(tile * TM + item, pixels - 1);
    const int line = pixel / out_w, image = line / out_h;
    const int y = (line - image * out_h) * stride_h - top,
              x = (pixel - line * out_w) * stride_w - left;
    places[item] = (int4)(y, x, ((image * in_h + y) * in_w + x) * in_c, 0);
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  for (int quad = item % width; quad < in_c / 4; quad += width) {
    const int c = quad * 4;
    uint4 taps[FILTER_H];
#pragma unroll
    for (int u = 0; u < FILTER_H; ++u) {
      taps[u] = *(__global const uint4 *)(depth_packed + u * in_c + c);
    }
    const int4 start = *(__global const int4 *)(depth_channels + c);
    const int4 multiplier = *(__global const int4 *)(depth_channels + depth_pitch + c);
    const int4 shift = *(__global const int4 *)(depth_channels + 2 * depth_pitch + c);
#pragma unroll 2
    for (int p = item / width; p < TM; p += ITEMS / width) {
      const int4 place = places[p];
      uint pixel[FILTER_H][4];
#pragma unroll
      for (int u = 0; u < FILTER_H; ++u) {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          const int y = place.s0 + u, x = place.s1 + v;
          pixel[u][v] = outside;
          if (v < FILTER_W && (uint)y < (uint)in_h && (uint)x < (uint)in_w) {
            pixel[u][v] = *(__global const uint *)(src + (place.s2 + (u * in_w + v) * in_c + c));
          }
        }
      }
      int4 sum = start;
#pragma unroll
      for (int u = 0; u < FILTER_H; ++u) {
        // Transposes words of one column and four channels to words of one channel and four columns.
        const uint low = permuted(pixel[u][0], pixel[u][1], 0x5140);
        const uint high = permuted(pixel[u][0], pixel[u][1], 0x7362);
        const uint low2 = permuted(pixel[u][2], pixel[u][3], 0x5140);
        const uint high2 = permuted(pixel[u][2], pixel[u][3], 0x7362);
        sum.s0 = dot4(permuted(low, low2, 0x5410), taps[u].s0, sum.s0);
        sum.s1 = dot4(permuted(low, low2, 0x7632), taps[u].s1, sum.s1);
        sum.s2 = dot4(permuted(high, high2, 0x5410), taps[u].s2, sum.s2);
        sum.s3 = dot4(permuted(high, high2, 0x7632), taps[u].s3, sum.s3);
      }
      const int4 value =
          clamp(requantize_int4(sum, multiplier, shift) + mid_zero, mid_low, mid_high);
      *(__local uint *)((__local char *)mid + p * pitch + c) = as_uint(convert_char4(value));
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  MMA_SUM4_T sum[MB][NB];
#pragma unroll
  for (int m = 0; m < MB; ++m) {
#pragma unroll
    for (int n = 0; n < NB; ++n) sum[m][n] = (MMA_SUM4_T)(0);
  }
  const uint at = local_address(mid) + lane % 16 * pitch + lane / 16 * 16;
  for (int step = 0; step < steps; step += AHEAD) {
#pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
#pragma unroll
      for (int n = 0; n < NB / 2; ++n) b[s][n] = next[s][n];
    }
    READ_RIGHT(next, step + AHEAD);
#pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
      if (step + s < steps) {
#pragma unroll
        for (int m = 0; m < MB; ++m) {
          uint4 a;
          LDMATRIX_X4(a, at + m * 16 * pitch + (step + s) * 32);
#pragma unroll
          for (int n = 0; n < NB / 2; ++n) {
            MMA(sum[m][2 * n], a, b[s][n].s0, b[s][n].s1);
            MMA(sum[m][2 * n + 1], a, b[s][n].s2, b[s][n].s3);
          }
        }
      }
    }
  }

  // Lane 4 * g + q has pixels g and g + 8 of each block and 2 * BLOCKS channels from q * 2 * BLOCKS on.
#pragma unroll
  for (int n = 0; n < NB; n += BLOCKS) {
    const int o = panel * TN + (warp * NB + n) * 8 + lane % 4 * (2 * BLOCKS);
    if (o < out_c) {
      CHANNEL4_T channel[BLOCKS / 2];
#pragma unroll
      for (int j = 0; j < BLOCKS / 2; ++j) channel[j] = CHANNEL4_AT(o + 4 * j);
#pragma unroll
      for (int i = 0; i < MB * 2; ++i) {
        const int pixel = tile * TM + lane / 4 + i * 8;
        if (pixel < pixels) {
          const int to = RESULT_AT(pixel, o, out_c);
          int4 v[BLOCKS / 2];
#pragma unroll
          for (int j = 0; j < BLOCKS / 2; ++j) {
            const int4 x = sum[i / 2][n + 2 * j], y = sum[i / 2][n + 2 * j + 1];
            v[j] = i % 2 == 0 ? (int4)(x.s0, x.s1, y.s0, y.s1) : (int4)(x.s2, x.s3, y.s2, y.s3);
            v[j] = FINISH_SUM4_ALIGNED(v[j], channel[j], to + 4 * j);
          }
#if BLOCKS == 4
          *(__global char8 *)(dst + to) = convert_char8((int8)(v[0], v[1]));
#else
          *(__global char4 *)(dst + to) = convert_char4(v[0]);
#endif
        }
      }
    }
  }
}
