// warps_nvidia.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n] + residual[m, n]) for up to 8
//                   rows on NVIDIA's tensor cores: the time of reading the weights
//
// Shapes    src: [rows, depth], depth a multiple of 64; packed: as pack_warps_nvidia.cl writes it;
//           bias: [cols]; dst: [rows, cols]; with BLOCKS block_scales: [cols, depth / block], block a
//           multiple of 32
// Launch    one work-group per 16 columns, whose warps share the depth: global = (ceil(cols / 16) * WARPS *
//           32, 1, 1), local = (WARPS * 32, 1, 1)
// Macros    WARPS     1..16   warps of a work-group
//           ROWS      1..8    rows; up to 4 with SPLIT
//           SPLIT     0|1     1: src is float, and each element the sum of two halves: 22 bits of mantissa
//           DEPTH     multiple of 64  depth
//           BITS      4|8|16  of a weight: integers, or half
//           BLOCKS    0|1     1: `block` elements of a row share a scale; SCALED is 0
//           MMA_TYPE  0       see common/mma.cl
//           SRC_T, DST_T  float|half  element types; src is half without SPLIT
//           and those of common/epilogue.cl
// Numerics  products of halves are exact, sums are float; warps are added in order, the bias last. With
//           SPLIT, elements beyond 65504 count as 65504
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"
#include "fully_connected/blocks.cl"

#if SPLIT
#define PARTS (2 * ROWS)  // rows of right operands
#else
#define PARTS ROWS
#endif
#define STEP 64                     // elements of depth, in four products of 16
#define AHEAD (BITS == 16 ? 2 : 4)  // steps
// READS: of 16 bytes that a lane makes in a step

#if BITS == 16
#define READS 4
#define LEFT(w, j) ((w)[j])
#elif BITS == 8
#define READS 2
// Bytes 128 above the weights, behind the exponent of 1024, less 1152.
uint halves_of_bytes(uint word, uint select) {
  uint v;
  __asm("{.reg .b32 t; prmt.b32 t, %1, 0x64646464, %2; sub.f16x2 %0, t, %3;}"
        : "=r"(v)
        : "r"(word), "r"(select), "r"(0x64806480u));
  return v;
}
uint4 left_of(uint2 w) {
  return (uint4)(halves_of_bytes(w.s0, 0x4140u), halves_of_bytes(w.s0, 0x4342u),
                 halves_of_bytes(w.s1, 0x4140u), halves_of_bytes(w.s1, 0x4342u));
}
#define LEFT(w, j) left_of((j) % 2 ? (w)[(j) / 2].hi : (w)[(j) / 2].lo)
#else
#define READS 1
// Four bits, 8 above the weights, behind the exponent of 1024: in the lowest place less 1032, in the
// next one, which counts 16 times as much, a sixteenth less 72.
uint halves_of_low(uint word) {
  uint v;
  __asm("sub.f16x2 %0, %1, %2;"
        : "=r"(v)
        : "r"((word & 0x000F000Fu) | 0x64006400u), "r"(0x64086408u));
  return v;
}
uint halves_of_high(uint word) {
  uint v;
  __asm("fma.rn.f16x2 %0, %1, %2, %3;"
        : "=r"(v)
        : "r"((word & 0x00F000F0u) | 0x64006400u), "r"(0x2C002C00u), "r"(0xD480D480u));
  return v;
}
uint4 left_of(uint w) {
  return (uint4)(halves_of_low(w), halves_of_high(w), halves_of_low(w >> 8),
                 halves_of_high(w >> 8));
}
#define LEFT(w, j) \
  left_of((j) == 0 ? (w)[0].s0 : (j) == 1 ? (w)[0].s1 : (j) == 2 ? (w)[0].s2 : (w)[0].s3)
#endif

#define PITCH (DEPTH + 8)  // halves of a row in local memory; rows begin at different banks

// Reads of a warp from step `from` on; steps past the end read the last one.
#define READ_STEPS(from)                                                 \
  do {                                                                   \
    _Pragma("unroll") for (int a = 0; a < AHEAD; ++a) {                  \
      _Pragma("unroll") for (int i = 0; i < READS; ++i) next[a][i] =     \
          packed[(min((from) + a * WARPS, steps - 1) * READS + i) * 32]; \
    }                                                                    \
  } while (0)

__kernel __attribute__((reqd_work_group_size(WARPS * 32, 1, 1))) void fully_connected_warps(
    __global const SRC_T *src, __global const uint4 *packed,
    BLOCK_SCALES_PARAM BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
    int depth BLOCK_PARAM) {
  LOCAL_LINES(uint, right, PARTS * PITCH / 2);
  LOCAL_ARRAY(float, partial, WARPS * 16 * PARTS);
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int g = lane / 4, q = lane % 4;
  const int n0 = get_group_id(0) * 16;
  const int steps = DEPTH / STEP;
  packed += (size_t)get_group_id(0) * steps * (READS * 32) + lane;
  // A warp reads several steps at once, the first ones while src arrives.
  uint4 next[AHEAD][READS];
  READ_STEPS(warp);
  // Several reads take the time of one; the compiler does that where it knows their number.
#pragma unroll 8
  for (int begin = 0; begin < ROWS * DEPTH / 2; begin += WARPS * 32) {
    const int i = begin + item;
    if (begin + WARPS * 32 > ROWS * DEPTH / 2 && i >= ROWS * DEPTH / 2) break;
    const int m = i / (DEPTH / 2), at = m * (PITCH / 2) + i % (DEPTH / 2);
#if SPLIT
    float2 v = vload2(i, src);
    v = select(v, (float2)(65504.0f), v > 65504.0f);
    v = select(v, (float2)(-65504.0f), v < -65504.0f);
    right[at] = to_halves(v.s0, v.s1);
    v -= from_halves(right[at]);
    right[at + ROWS * (PITCH / 2)] = to_halves(v.s0, v.s1);
#else
    right[at] = ((__global const uint *)src)[i];
#endif
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  float4 sum = 0.0f, other = 0.0f;
#if BLOCKS
  const int blocks = DEPTH / block;
  const int first = min(n0 + g, cols - 1) * blocks, second = min(n0 + g + 8, cols - 1) * blocks;
#endif
  for (int s = warp; s < steps; s += WARPS * AHEAD) {
    uint4 w[AHEAD][READS];
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
#pragma unroll
      for (int i = 0; i < READS; ++i) w[a][i] = next[a][i];
    }
    READ_STEPS(s + WARPS * AHEAD);
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      const int at = min(s + a * WARPS, steps - 1) * STEP;
      // Rows that do not exist, and steps past the end, are zero.
      uint4 x0 = 0, x1 = 0;
      if (g < PARTS && s + a * WARPS < steps) {
        x0 = *(__local const uint4 *)(right + (g * PITCH + at + q * 8) / 2);
        x1 = *(__local const uint4 *)(right + (g * PITCH + at + 32 + q * 8) / 2);
      }
#if BLOCKS
      float4 low = 0.0f, high = 0.0f;
#else
      float4 low = sum, high = other;
#endif
      uint4 left = LEFT(w[a], 0);
      MMA(low, left, x0.s0, x0.s1);
      left = LEFT(w[a], 1);
      MMA(low, left, x0.s2, x0.s3);
      left = LEFT(w[a], 2);
      MMA(high, left, x1.s0, x1.s1);
      left = LEFT(w[a], 3);
      MMA(high, left, x1.s2, x1.s3);
#if BLOCKS
      const int at0 = at / block, at1 = (at + 32) / block;
      sum +=
          low * (float4)((float2)(block_scales[first + at0]), (float2)(block_scales[second + at0]));
      sum += high *
             (float4)((float2)(block_scales[first + at1]), (float2)(block_scales[second + at1]));
#else
      sum = low;
      other = high;
#endif
    }
  }
  sum += other;
  // A lane has rows 2q and 2q + 1 of columns g and g + 8.
  if (2 * q < PARTS) {
    partial[(warp * 16 + g) * PARTS + 2 * q] = sum.s0;
    partial[(warp * 16 + g + 8) * PARTS + 2 * q] = sum.s2;
  }
  if (2 * q + 1 < PARTS) {
    partial[(warp * 16 + g) * PARTS + 2 * q + 1] = sum.s1;
    partial[(warp * 16 + g + 8) * PARTS + 2 * q + 1] = sum.s3;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = item; i < 16 * ROWS; i += WARPS * 32) {
    const int m = i / 16, n = n0 + i % 16;
    if (n >= cols) continue;
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
#pragma unroll
      for (int part = m; part < PARTS; part += ROWS)
        total += partial[(w * 16 + i % 16) * PARTS + part];
    }
    const int at = RESULT_AT(m, n, cols);
    STORE(DST_T, dst, at, FINISH_SUM(total, CHANNEL_AT(n), at));
  }
}
