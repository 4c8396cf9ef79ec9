// fused_f16_nvidia.cl - depthwise convolution of halves with a depth multiplier of 1, then a 1x1 convolution, both
//                       on NVIDIA's tensor cores: mid[n, y, x, c] = depth_act(depth_bias[c] + sum over u, v of
//                       wide[n, y * STRIDE_H - top + u, x * STRIDE_W - left + v, c] * depth_weights[u, v, c]),
//                       dst[n, y, x, o] = act(bias[o] + residual + sum over c of mid[n, y, x, c] * weights[o, c]),
//                       with wide = src, or the result of a 1x1 convolution before the two (an inverted residual
//                       block): wide[n, y, x, c] = expand_act(expand_bias[c] + sum over i of src[n, y, x, i] *
//                       expand_weights[c, i]), zero outside of the image.
//                       For the first sum the pixels under two taps and 8 channels are the left operand, a
//                       diagonal matrix of their weights the right one. A lane's sums of a product are what it
//                       gives to the next one as its left operand, so wide and mid stay in registers
//
// Shapes    src: [n, in_h, in_w, in_c], in_c is a multiple of 8; depth_packed: as pack_depth_nvidia.cl writes
//           it; packed: as pack_point_nvidia.cl writes it with BLOCKS 2; expand_packed: with BLOCKS 4 and
//           TN 32; dst: [n, out_h, out_w, out_c]; blocks = ceil(channels of mid / 32); a unit is P = 2 * MB
//           pixels of a row: units_x = ceil(out_w / P), units = n * out_h * units_x
// Launch    one work-group per WARPS_M * 8 units x TN output channels (a panel): global =
//           (tiles * panels * items), local = (items), items = WARPS_M * WARPS_K * 32
// Macros    MB        1|2       blocks of 16 pixels of a warp
//           TN        16|32|64  output channels of a work-group
//           WARPS_M   1..8      warps with pixels of their own
//           WARPS_K   1..16     warps that share the channels of mid
//           FILTER_H, FILTER_W  1..5  of the depthwise convolution, not dilated
//           STRIDE_H, STRIDE_W  1|2   likewise
//           READS     0|1       0: a warp reads the weights of a block of channels when it needs them: the fewest
//                               registers. 1: those of its first block before OPERANDS_READY, of others when the one
//                               before is done
//           DEPTH_ACT 0..13     activation of mid, see common/activation.cl
//           EXPAND    0|1       1: wide is a product, 0: it is src
//           EXPAND_ACT 0..13    its activation
//           EXPAND_STEPS 1..    with EXPAND ceil(in_c / 32), else 1
//           WIDE      0|1       1: out_c and the start of each pixel of dst are multiples of 4
//           MMA_TYPE  0         half
//           DST_T     float|half  element type of dst; and those of common/epilogue.cl
// Numerics  products exact, sums in float; wide and mid are rounded to half; bias and residual are added last
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"

#define ITEMS (WARPS_M * WARPS_K * 32)
#define P (2 * MB)
#define COLUMNS ((P - 1) * STRIDE_W + FILTER_W)
#define TAPS (FILTER_H * FILTER_W)
#define PAIRS ((TAPS + 1) / 2)
#define PAIRS_X ((COLUMNS + 1) / 2)
#define DEPTH_BLOCK ((PAIRS + 1 + EXPAND) * 8)
#define NB (TN / 8)
#define QUADS (TN / 4)  // of a row of sums
// Pieces of 16 bytes: weights and biases of the depthwise convolution for a block.
#define DEPTH_PIECES ((PAIRS + 1) * 8)
// Local memory of a warp, in pieces: with READS weights of the 1x1 convolution, then of the depthwise one for a
// block; later the warp's sums.
#define SUMS_PIECES (8 * P * QUADS)
#define BLOCK_PIECES (READS ? TN * 4 + DEPTH_PIECES : 0)
#define PITCH (BLOCK_PIECES > SUMS_PIECES ? BLOCK_PIECES : SUMS_PIECES)
// 1: an item finishes at most four sums, whose elements of the residual, if they are halves, it reads before the
// products.
#define RESIDUAL_EARLY (READS && RESIDUAL && WIDE && WARPS_M * 8 * P * QUADS <= ITEMS)

static inline uint permuted(uint a, uint bytes) {
  uint d;
  __asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(0), "r"(bytes));
  return d;
}

#if READS
// The lanes of a warp wait for each other, and what they have read and written in local memory is done.
#define WARP_SYNC() __asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
// Copies 16 bytes to local memory, as COPY_16 of common/mma.cl; `offset` is a constant, so no register holds the sums.
#define COPY_16_AT(address, from, offset)                                                         \
  __asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %2], 16;" ::"r"(address), "l"(from), \
                 "n"(offset)                                                                      \
                 : "memory")

// Starts to copy weights of a block to local memory: those of the depthwise convolution, which all lanes read, and
// those of the 1x1 convolution, of which a lane reads what it has copied itself.
#define COPY_LANES(i) COPY_16_AT(at, from, (i) * 512)
static inline void copy_depth(uint at, __global const uint4 *from, int lane) {
#if DEPTH_PIECES >= 32
  COPY_LANES(0);
#endif
#if DEPTH_PIECES >= 64
  COPY_LANES(1);
#endif
#if DEPTH_PIECES >= 96
  COPY_LANES(2);
#endif
#if DEPTH_PIECES % 32 != 0
  if (lane < DEPTH_PIECES % 32) COPY_LANES(DEPTH_PIECES / 32);
#endif
}
static inline void copy_point(uint at, __global const uint4 *from) {
  COPY_LANES(0);
  COPY_LANES(1);
#if TN >= 32
  COPY_LANES(2);
  COPY_LANES(3);
#endif
#if TN >= 64
  COPY_LANES(4);
  COPY_LANES(5);
  COPY_LANES(6);
  COPY_LANES(7);
#endif
}

// Starts to read the weights of a block; a batch of copies, even if there is no such block.
#define READ_WEIGHTS(block)                                                              \
  do {                                                                                   \
    if ((block) < blocks) {                                                              \
      copy_depth(to + TN * 4 * 16, depth_packed + ((block) * DEPTH_BLOCK + lane), lane); \
      copy_point(to, packed + (block) * (TN * 4));                                       \
    }                                                                                    \
    COPIES_COMMIT();                                                                     \
  } while (0)
#endif

#if !EXPAND
#if FILTER_H * COLUMNS <= 32
#define BITS_T uint
#else
#define BITS_T ulong
#endif
// The pixels under the filter of a lane's unit, 8 channels of each from `src` on; zeros where `inside` has no bit.
void load_pixels(uint pixel[FILTER_H][COLUMNS][4], __global const half *src, BITS_T inside,
                 int in_w, int in_c) {
#pragma unroll
  for (int u = 0; u < FILTER_H; ++u) {
#pragma unroll
    for (int t = 0; t < COLUMNS; ++t) {
      uint4 v = (uint4)(0);
      if (inside >> (u * COLUMNS + t) & 1)
        v = *(__global const uint4 *)(src + (u * in_w + t) * in_c);
      pixel[u][t][0] = v.s0, pixel[u][t][1] = v.s1, pixel[u][t][2] = v.s2, pixel[u][t][3] = v.s3;
    }
  }
}
#define LOAD_PIXELS(pixel, block)                                                                 \
  load_pixels(pixel, src + (from + (block) * 32), (block) * 32 + 8 * q < in_c ? inside : 0, in_w, \
              in_c)
#endif

#if RESIDUAL_EARLY
#define RESIDUAL_AT(at)                                                             \
  (sizeof(RESIDUAL_T) == 2 ? (float4)(from_halves(early.s0), from_halves(early.s1)) \
                           : LOAD4_ALIGNED(RESIDUAL_T, residual, at))
#elif RESIDUAL
#define RESIDUAL_AT(at) LOAD4_ALIGNED(RESIDUAL_T, residual, at)
#else
#define RESIDUAL_AT(at) 0
#endif

// Finishes and stores the sums v of channels o .. o + 3 of a pixel.
#if WIDE
#define STORE_QUAD(pixel, o, v)                                                        \
  {                                                                                    \
    const int at = RESULT_AT(pixel, o, out_c);                                         \
    STORE4_ALIGNED(DST_T, dst, at, FINISH_SUM4_WITH(v, CHANNEL, at, RESIDUAL_AT(at))); \
  }
#else
#define STORE_LANE(pixel, o, v)                              \
  if ((o) < out_c) {                                         \
    const int at = RESULT_AT(pixel, o, out_c);               \
    STORE(DST_T, dst, at, FINISH_SUM(v, CHANNEL_AT(o), at)); \
  }
#define STORE_QUAD(pixel, o, v)      \
  STORE_LANE(pixel, o, (v).s0)       \
  STORE_LANE(pixel, (o) + 1, (v).s1) \
  STORE_LANE(pixel, (o) + 2, (v).s2) \
  STORE_LANE(pixel, (o) + 3, (v).s3)
#endif
#if BIAS
#define BIAS4_ALIGNED(o) LOAD4_ALIGNED(BIAS_T, bias, o)
#else
#define BIAS4_ALIGNED(o) (float4)(0.0f)
#endif
#if ACT == 14
#define CHANNEL4_ALIGNED(o) sloped4(BIAS4_ALIGNED(o), LOAD4_ALIGNED(SLOPES_T, slopes, o))
#else
#define CHANNEL4_ALIGNED(o) BIAS4_ALIGNED(o)
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void separable_conv2d_fused_f16(
    __global const half *src,
#if EXPAND
    __global const uint4 *expand_packed,
#endif
    __global const uint4 *depth_packed, __global const uint4 *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int units, int units_x, int panels, int blocks, int in_h,
    int in_w, int in_c, int out_h, int out_w, int out_c, int top, int left) {
  LOCAL_LINES(uint4, local_lines, WARPS_M * WARPS_K * PITCH);
  const int item = get_local_id(0), lane = item % 32, g = lane / 4, q = lane % 4;
  const int warp_k = item / 32 % WARPS_K, warp_m = item / (32 * WARPS_K);
  const int warp_place = (warp_k * WARPS_M + warp_m) * PITCH;
  __local uint4 *const place = local_lines + warp_place;
  const int tile = (int)get_group_id(0) / panels, panel = (int)get_group_id(0) - tile * panels;
  packed += panel * blocks * (TN * 4) + lane;

#if READS
  const uint to = local_address(place + lane);
  // No launch of an inference writes weights and biases.
  READ_WEIGHTS(warp_k);
#if WIDE
  // The channels of all sums that the item finishes.
  const CHANNEL4_T channel = CHANNEL4_ALIGNED(min(panel * TN + item % QUADS * 4, out_c - 4));
#define CHANNEL channel
#endif
  OPERANDS_READY();
#else
#define CHANNEL CHANNEL4_ALIGNED(o)
#endif

  const int first_unit = tile * (WARPS_M * 8), unit = first_unit + warp_m * 8 + g;
  const int line = unit / units_x, image = line / out_h;
  const int in_y = (line - image * out_h) * STRIDE_H - top;
  const int in_x = (unit - line * units_x) * (P * STRIDE_W) - left;
  const int from = ((image * in_h + in_y) * in_w + in_x) * in_c + 8 * q;
  // The lanes of the diagonal have their weight in the low or the high half, others have zeros.
  const uint diagonal = g / 2 == q ? (g % 2 == 0 ? 0x4410 : 0x1044) : 0x4444;
  const uint diagonal2 = g / 2 == q ? (g % 2 == 0 ? 0x4432 : 0x3244) : 0x4444;

  float4 sum[MB][NB];
#pragma unroll
  for (int m = 0; m < MB; ++m) {
#pragma unroll
    for (int n = 0; n < NB; ++n) sum[m][n] = (float4)(0.0f);
  }

#if !EXPAND
  BITS_T inside = 0;  // those of the pixels under the filter that are in the image
#pragma unroll
  for (int u = 0; u < FILTER_H; ++u) {
#pragma unroll
    for (int t = 0; t < COLUMNS; ++t) {
      const bool is = (uint)(in_y + u) < (uint)in_h && (uint)(in_x + t) < (uint)in_w;
      inside |= is && unit < units ? (BITS_T)1 << (u * COLUMNS + t) : 0;
    }
  }
#endif
#if RESIDUAL_EARLY
  uint2 early = (uint2)(0);  // as it is stored, or the conversion would wait for it here
  {
    const int row = item / QUADS, its_unit = first_unit + row / P;
    const int its_line = its_unit / units_x, x = (its_unit - its_line * units_x) * P + row % P;
    const int o = panel * TN + item % QUADS * 4;
    if (sizeof(RESIDUAL_T) == 2 && row < WARPS_M * 8 * P && its_unit < units && x < out_w &&
        o < out_c)
      early = *(__global const uint2 *)(residual + RESULT_AT(its_line * out_w + x, o, out_c));
  }
#endif

  for (int block = warp_k; block < blocks; block += WARPS_K) {
#if EXPAND
    uint pixel[FILTER_H][2 * PAIRS_X][4];
    __global const uint4 *depth = depth_packed + block * DEPTH_BLOCK;
    // As the second product below, with the pixels of a column and the next one as rows of a block.
    const float4 low = as_float4(depth[PAIRS * 8 + 8 + q * 2]);
    const float4 high = as_float4(depth[PAIRS * 8 + 8 + q * 2 + 1]);
#pragma unroll
    for (int u = 0; u < FILTER_H; ++u) {
      const bool row = unit < units && (uint)(in_y + u) < (uint)in_h;
      float4 wide[PAIRS_X][4];
#pragma unroll
      for (int t = 0; t < PAIRS_X; ++t) {
        wide[t][0] = low.s0101, wide[t][1] = low.s2323;
        wide[t][2] = high.s0101, wide[t][3] = high.s2323;
      }
#if EXPAND_STEPS <= 2
#pragma unroll
#endif
      for (int step = 0; step < EXPAND_STEPS; ++step) {
        __global const uint4 *right = expand_packed + (block * EXPAND_STEPS + step) * 128 + lane;
        const uint4 b[4] = {right[0], right[32], right[64], right[96]};
#pragma unroll
        for (int t = 0; t < PAIRS_X; ++t) {
          uint4 v[2];
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            v[i] = (uint4)(0);
            if (row && (uint)(in_x + 2 * t + i) < (uint)in_w && step * 32 + 8 * q < in_c) {
              v[i] = *(__global const uint4 *)(src +
                                               (from + (u * in_w + 2 * t + i) * in_c + step * 32));
            }
          }
          const uint4 a = (uint4)(v[0].s0, v[1].s0, v[0].s1, v[1].s1);
          const uint4 a2 = (uint4)(v[0].s2, v[1].s2, v[0].s3, v[1].s3);
          MMA(wide[t][0], a, b[0].s0, b[0].s1);
          MMA(wide[t][1], a, b[0].s2, b[0].s3);
          MMA(wide[t][2], a, b[1].s0, b[1].s1);
          MMA(wide[t][3], a, b[1].s2, b[1].s3);
          MMA(wide[t][0], a2, b[2].s0, b[2].s1);
          MMA(wide[t][1], a2, b[2].s2, b[2].s3);
          MMA(wide[t][2], a2, b[3].s0, b[3].s1);
          MMA(wide[t][3], a2, b[3].s2, b[3].s3);
        }
      }
#pragma unroll
      for (int t = 0; t < PAIRS_X; ++t) {
        const bool inside = row && (uint)(in_x + 2 * t) < (uint)in_w;
        const bool inside2 = row && (uint)(in_x + 2 * t + 1) < (uint)in_w;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 v = ACTIVATION(EXPAND_ACT, wide[t][j]);
          pixel[u][2 * t][j] = inside ? to_halves(v.s0, v.s1) : 0;
          pixel[u][2 * t + 1][j] = inside2 ? to_halves(v.s2, v.s3) : 0;
        }
      }
    }
#else
    uint pixel[FILTER_H][COLUMNS][4];
    LOAD_PIXELS(pixel, block);
#endif
#if READS
    COPIES_WAIT(0);
    WARP_SYNC();
    __local const uint4 *depthwise = place + TN * 4;
#else
    __global const uint4 *depthwise = depth_packed + block * DEPTH_BLOCK;
#endif
    float4 between[MB][4];
    {
      const float4 low = as_float4(depthwise[PAIRS * 8 + q * 2]);
      const float4 high = as_float4(depthwise[PAIRS * 8 + q * 2 + 1]);
#pragma unroll
      for (int m = 0; m < MB; ++m) {
        between[m][0] = low.s0101, between[m][1] = low.s2323;
        between[m][2] = high.s0101, between[m][3] = high.s2323;
      }
    }
#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair) {
      const int u0 = 2 * pair / FILTER_W, v0 = 2 * pair % FILTER_W;
      const int u1 = (2 * pair + 1) / FILTER_W, v1 = (2 * pair + 1) % FILTER_W;
      const uint4 words = depthwise[pair * 8 + g];
      const uint weights[4] = {words.s0, words.s1, words.s2, words.s3};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint b0 = permuted(weights[j], diagonal), b1 = permuted(weights[j], diagonal2);
#pragma unroll
        for (int m = 0; m < MB; ++m) {
          uint4 a = (uint4)(0);
          a.s0 = pixel[u0][2 * m * STRIDE_W + v0][j];
          a.s1 = pixel[u0][(2 * m + 1) * STRIDE_W + v0][j];
          if (u1 < FILTER_H) {
            a.s2 = pixel[u1][2 * m * STRIDE_W + v1][j];
            a.s3 = pixel[u1][(2 * m + 1) * STRIDE_W + v1][j];
          }
          MMA(between[m][j], a, b0, b1);
        }
      }
    }

#pragma unroll
    for (int s = 0; s < 2; ++s) {
      uint4 a[MB];
#pragma unroll
      for (int m = 0; m < MB; ++m) {
        const float4 x = ACTIVATION(DEPTH_ACT, between[m][2 * s]);
        const float4 y = ACTIVATION(DEPTH_ACT, between[m][2 * s + 1]);
        a[m] = (uint4)(to_halves(x.s0, x.s1), to_halves(x.s2, x.s3), to_halves(y.s0, y.s1),
                       to_halves(y.s2, y.s3));
      }
#pragma unroll
      for (int n = 0; n < NB / 2; ++n) {
        const int i = s * (NB / 2) + n;
#if READS
        const uint4 b = place[i * 32 + lane];
#else
        const uint4 b = packed[block * (TN * 4) + i * 32];
#endif
#pragma unroll
        for (int m = 0; m < MB; ++m) {
          MMA(sum[m][2 * n], a[m], b.s0, b.s1);
          MMA(sum[m][2 * n + 1], a[m], b.s2, b.s3);
        }
      }
    }
#if READS
    WARP_SYNC();  // all lanes have read the weights
    READ_WEIGHTS(block + WARPS_K);
#endif
  }

  // A lane has channels 4q .. 4q + 3 of each 16, of the P pixels of its unit.
  __local float4 *const sums = (__local float4 *)local_lines;
#pragma unroll
  for (int m = 0; m < MB; ++m) {
#pragma unroll
    for (int n = 0; n < NB; n += 2) {
      const float4 x = sum[m][n], y = sum[m][n + 1];
      // Neighbouring units exchange halves of 8 quads, so that their rows lie in other banks.
      const int quad = 2 * m * QUADS + n * 2 + q, swap = g % 2 * 4;
      __local float4 *unit_sums = sums + warp_place + g * (P * QUADS);
      unit_sums[quad ^ swap] = (float4)(x.s0, x.s1, y.s0, y.s1);
      unit_sums[(quad + QUADS) ^ swap] = (float4)(x.s2, x.s3, y.s2, y.s3);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = item; i < WARPS_M * 8 * P * QUADS; i += ITEMS) {
    const int quad = i % QUADS, row = i / QUADS, to_unit = first_unit + row / P;
    const int to_line = to_unit / units_x, x = (to_unit - to_line * units_x) * P + row % P;
    const int o = panel * TN + quad * 4;
    if (to_unit < units && x < out_w && o < out_c) {
      float4 v = (float4)(0.0f);
#pragma unroll
      for (int k = 0; k < WARPS_K; ++k) {
        v += sums[(k * WARPS_M + row / (8 * P)) * PITCH +
                  ((row % (8 * P) * QUADS + quad) ^ (row / P % 2 * 4))];
      }
      STORE_QUAD(to_line * out_w + x, o, v)
    }
  }
}
