// registers_nvidia.cl - 2-D convolution on NVIDIA's tensor cores as a product of matrices, whose operands go from
//                       global memory to registers; for products of few work-groups. A matrix product is a
//                       convolution of an image of width 1 with a 1 x 1 filter
//
// Where every compute unit has one work-group, the time is that of the reads that follow one another. The registers of
// all warps take more bytes that are on their way than local memory does (tensor_gemm_nvidia.cl), and warps that
// share the depth wait for each other once, at the end.
//
// Shapes    as in tensor_gemm_nvidia.cl; packed: as pack_nvidia.cl writes it with TK 64 bytes, BLOCKS 2 and NEIGHBOURS
//           1; group_in, in_c and src_group are multiples of 16 bytes
//           with FILL: outside: four bytes, each the value outside of the image
// Launch    one work-group of WARPS_M * WARPS_N * WARPS_K * 32 per tile of TM pixels x TN channels: global =
//           (ceil(pixels / TM) * panels * items, 1, groups), local = (items, 1, 1)
// Macros    TM, TN            tile: pixels (16..) and output channels (16..) of a work-group
//           WARPS_M, WARPS_N  1..8  warps along TM and TN, each with whole blocks of 16 pixels x 16 channels
//           WARPS_K           1..8  warps that share the depth
//           AHEAD             1..8  parts of 64 bytes of depth that a warp reads before it needs the first one
//           FILTER_H, FILTER_W, STRIDE_H, STRIDE_W, DILATION_H, DILATION_W  1..  those of the convolution
//           WIDE              0|1   1: group_out, out_c, dst_group and the start of each pixel of
//                                   dst are multiples of 8
//           MMA_TYPE          0..2  0: src is half, 1: float, 2: char; packed is of the same type
//           FILL              0|1   1: values outside of the image are `outside`, not zero
//           DST_T     float|half|char  element type of dst; those of common/epilogue.cl and common/by_floats.cl
// Numerics  products exact (after float operands have been rounded to TF32), sums in float, in an order
//           that depends only on sizes; bias and residual are added last. Integers: exact
#include "common/epilogue.cl"

#include "common/by_floats.cl"
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"
#include "tensor_gemm/quotient.cl"

#if MMA_TYPE == 2
#define SRC_T char
#elif MMA_TYPE == 1
#define SRC_T float
#else
#define SRC_T half
#endif
#define ITEMS (WARPS_M * WARPS_N * WARPS_K * 32)
#define MB (TM / WARPS_M / 16)     // blocks of 16 pixels of a warp
#define PAIRS (TN / WARPS_N / 16)  // pairs of blocks of 8 channels
#define EACH (16 / MMA_BYTES)      // elements of 16 bytes
#define QUADS (TN / 4)             // of a row of sums
// Rows that are neighbours exchange halves of 32 channels, so that they lie in different banks.
#define QUAD_AT(row, quad) ((quad) ^ (QUADS >= 8 ? (row) % 2 * 4 : 0))
#define ROUNDS ((TM * QUADS + ITEMS - 1) / ITEMS)  // quads that an item stores
// The residual is read before the products.
#define FETCHES (RESIDUAL && WIDE && (BY_FLOATS || !QUANTIZED))
#if QUANTIZED
#define FETCHED_T uint
#define FETCHED(r) convert_int4(as_char4(r))
#else
#define FETCHED_T float4
#define FETCHED(r) (r)
#endif

#if MMA_TYPE == 1
#define ROUND(v) ((uint4)(to_tf32(v.s0), to_tf32(v.s1), to_tf32(v.s2), to_tf32(v.s3)))
#else
#define ROUND(v) (v)
#endif

// Reads the weights of a part.
#define READ_RIGHT(s, part)                                            \
  _Pragma("unroll") for (int n = 0; n < PAIRS; ++n) {                  \
    right_words[s][0][n] = right[(part) * (TN * 4) + n * 32];          \
    right_words[s][1][n] = right[(part) * (TN * 4) + TN * 2 + n * 32]; \
  }

// Reads the pixels of the next part; lane 4 * g + q has 16 bytes from 16 * q on, of rows g and g + 8 of each block.
#if FILTER_H * FILTER_W == 1
#define READ_LEFT(s)                                                        \
  do {                                                                      \
    _Pragma("unroll") for (int r = 0; r < 2 * MB; ++r) {                    \
      left_words[s][r] = (uint4)(OUTSIDE);                                  \
      if (from[r] >= 0 && i0 < group_in)                                    \
        left_words[s][r] = *(__global const uint4 *)(src + (from[r] + i0)); \
    }                                                                       \
    i0 += STEP_K;                                                           \
  } while (0)
#else
#define READ_LEFT(s)                                                           \
  do {                                                                         \
    const int u = tap / FILTER_W;                                              \
    const int at_y = u * DILATION_H, at_x = (tap - u * FILTER_W) * DILATION_W; \
    const int at = (at_y * in_w + at_x) * in_c + i0;                           \
    _Pragma("unroll") for (int r = 0; r < 2 * MB; ++r) {                       \
      const int y = in_y[r] + at_y, x = in_x[r] + at_x;                        \
      left_words[s][r] = (uint4)(OUTSIDE);                                     \
      if (u < FILTER_H && (uint)y < (uint)in_h && (uint)x < (uint)in_w)        \
        left_words[s][r] = *(__global const uint4 *)(src + (from[r] + at));    \
    }                                                                          \
    i0 += step_i;                                                              \
    tap += step_taps + (i0 >= group_in ? 1 : 0);                               \
    i0 -= i0 >= group_in ? group_in : 0;                                       \
  } while (0)
#endif
#define STEP_K (WARPS_K * 4 * EACH)  // of depth, from one part of a warp to its next one
#if FILL
#define OUTSIDE outside
#else
#define OUTSIDE 0
#endif

// Stores the sums v of channels o .. o + 3 of a pixel; `at` is where the first one lies in dst.
#if !WIDE
#define STORE_LANE(j, sum) \
  if (left_over > (j)) STORE(DST_T, dst, at + (j), FINISH_SUM(sum, CHANNEL_AT(o + (j)), at + (j)))
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void tensor_gemm_registers(
    __global const SRC_T *src, __global const SRC_T *packed,
#if FILL
    int outside,
#endif
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int panels, int steps, int group_in,
    int group_out, int src_group, int dst_group, int in_h, int in_w, int in_c, int out_h, int out_w,
    int out_c, int top, int left, int w_mul, int w_shift, int h_mul, int h_shift) {
  const int item = get_local_id(0);
  const int lane = item % 32, g = lane / 4, q = lane % 4, warp = item / 32;
  const int warp_m = warp % WARPS_M, warp_n = warp / WARPS_M % WARPS_N;
  const int warp_k = warp / (WARPS_M * WARPS_N);
  const int tile_m = (int)get_group_id(0) / panels;
  const int panel = (int)get_group_id(0) - tile_m * panels;
  const int group = get_group_id(2);
  __global const uint4 *right = (__global const uint4 *)packed +
                                (size_t)((group * panels + panel) * steps) * (TN * 4) +
                                warp_n * (PAIRS * 32) + lane;
  uint4 left_words[AHEAD][2 * MB], right_words[AHEAD][2][PAIRS];
#pragma unroll
  for (int s = 0; s < AHEAD; ++s) {
    // In the loop of a chain, what is not set here would keep its registers from one stage to the next.
#pragma unroll
    for (int r = 0; r < 2 * MB; ++r) left_words[s][r] = (uint4)(0);
#pragma unroll
    for (int n = 0; n < PAIRS; ++n) right_words[s][0][n] = right_words[s][1][n] = (uint4)(0);
    if (warp_k + s * WARPS_K < steps) READ_RIGHT(s, warp_k + s * WARPS_K);
  }
  OPERANDS_READY();

  src += group * src_group;
  int from[2 * MB];
#if FILTER_H * FILTER_W > 1
  int in_y[2 * MB], in_x[2 * MB];
#endif
#pragma unroll
  for (int r = 0; r < 2 * MB; ++r) {
    const int pixel = tile_m * TM + warp_m * (MB * 16) + r * 8 + g;
    const int line = QUOTIENT(pixel, w_mul, w_shift);
    const int image = QUOTIENT(line, h_mul, h_shift);
    const int x = (pixel - line * out_w) * STRIDE_W - left;
    const int y = (line - image * out_h) * STRIDE_H - top;
    from[r] = ((image * in_h + y) * in_w + x) * in_c;
#if FILTER_H * FILTER_W > 1
    in_y[r] = pixel < pixels ? y : INT_MIN / 2;
    in_x[r] = x;
#else
    if (pixel >= pixels || (uint)y >= (uint)in_h || (uint)x >= (uint)in_w) from[r] = -1;
#endif
  }
  // Channel and filter tap of this lane's part of the next read.
  int i0 = (warp_k * 4 + q) * EACH;
#if FILTER_H * FILTER_W > 1
  int tap = i0 / group_in;
  i0 -= tap * group_in;
  const int step_taps = STEP_K / group_in, step_i = STEP_K - step_taps * group_in;
#endif
#pragma unroll
  for (int s = 0; s < AHEAD; ++s) {
    if (warp_k + s * WARPS_K < steps) READ_LEFT(s);
  }

  // What this item stores: the same quad of channels of several pixels.
  const int channel = panel * TN + item % QUADS * 4;  // in the group
  const int left_over = group_out - channel, o = group * dst_group + channel;
#if FETCHES
  FETCHED_T added[ROUNDS];
#pragma unroll
  for (int i = 0; i < ROUNDS; ++i) {
    const int row = (i * ITEMS + item) / QUADS, pixel = tile_m * TM + row;
    added[i] = (FETCHED_T)(0);
    if (row < TM && pixel < pixels && left_over > 0) {
#if QUANTIZED
      added[i] = *(__global const FETCHED_T *)(residual + RESULT_AT(pixel, o, out_c));
#else
      added[i] = LOAD4_ALIGNED(RESIDUAL_T, residual, RESULT_AT(pixel, o, out_c));
#endif
    }
  }
#endif
#if BY_FLOATS
  const CHANNEL4_T own = CHANNEL4_ALIGNED_AT(left_over > 0 ? o : 0);
  const REAL_CHANNEL4_T real = REAL_CHANNEL4(own);
#elif WIDE
  const CHANNEL4_T own = CHANNEL4_AT(left_over > 0 ? o : 0);
#endif

  MMA_SUM4_T sum[MB][2 * PAIRS];
#pragma unroll
  for (int m = 0; m < MB; ++m) {
#pragma unroll
    for (int n = 0; n < 2 * PAIRS; ++n) sum[m][n] = (MMA_SUM4_T)(0);
  }
  for (int first = warp_k; first < steps; first += AHEAD * WARPS_K) {
#pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
      if (first + s * WARPS_K < steps) {
#pragma unroll
        for (int m = 0; m < MB; ++m) {
          const uint4 v = ROUND(left_words[s][2 * m]), w = ROUND(left_words[s][2 * m + 1]);
          const uint4 a = (uint4)(v.s0, w.s0, v.s1, w.s1), a2 = (uint4)(v.s2, w.s2, v.s3, w.s3);
#pragma unroll
          for (int n = 0; n < PAIRS; ++n) {
            const uint4 b = right_words[s][0][n];
            MMA(sum[m][2 * n], a, b.s0, b.s1);
            MMA(sum[m][2 * n + 1], a, b.s2, b.s3);
          }
#pragma unroll
          for (int n = 0; n < PAIRS; ++n) {
            const uint4 b = right_words[s][1][n];
            MMA(sum[m][2 * n], a2, b.s0, b.s1);
            MMA(sum[m][2 * n + 1], a2, b.s2, b.s3);
          }
        }
        if (first + (s + AHEAD) * WARPS_K < steps) {
          READ_RIGHT(s, first + (s + AHEAD) * WARPS_K);
          READ_LEFT(s);
        }
      }
    }
  }

  // A lane has channels 4q .. 4q + 3 of each 16, of rows g and g + 8.
  LOCAL_LINES(MMA_SUM4_T, sums, WARPS_K * TM * QUADS);
#pragma unroll
  for (int m = 0; m < MB; ++m) {
    const int row = (warp_m * MB + m) * 16 + g;
#pragma unroll
    for (int n = 0; n < PAIRS; ++n) {
      const MMA_SUM4_T x = sum[m][2 * n], y = sum[m][2 * n + 1];
      __local MMA_SUM4_T *to =
          sums + (warp_k * TM + row) * QUADS + QUAD_AT(row, (warp_n * PAIRS + n) * 4 + q);
      to[0] = (MMA_SUM4_T)(x.s0, x.s1, y.s0, y.s1);
      to[8 * QUADS] = (MMA_SUM4_T)(x.s2, x.s3, y.s2, y.s3);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int i = 0; i < ROUNDS; ++i) {
    const int row = (i * ITEMS + item) / QUADS, pixel = tile_m * TM + row;
    if (row < TM && pixel < pixels && left_over > 0) {
      MMA_SUM4_T v = (MMA_SUM4_T)(0);
#pragma unroll
      for (int k = 0; k < WARPS_K; ++k)
        v += sums[(k * TM + row) * QUADS + QUAD_AT(row, item % QUADS)];
      const int at = RESULT_AT(pixel, o, out_c);
#if BY_FLOATS
      STORE4_ALIGNED(DST_T, dst, at, FINISH_BY_FLOATS4(v, own, real, FETCHED(added[i])));
#elif FETCHES
      STORE4_ALIGNED(DST_T, dst, at, FINISH_SUM4_WITH(v, own, at, FETCHED(added[i])));
#elif WIDE
      STORE4_ALIGNED(DST_T, dst, at, FINISH_SUM4_ALIGNED(v, own, at));
#else
      STORE_LANE(0, v.s0);
      STORE_LANE(1, v.s1);
      STORE_LANE(2, v.s2);
      STORE_LANE(3, v.s3);
#endif
    }
  }
}
