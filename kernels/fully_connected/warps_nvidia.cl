// warps_nvidia.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n] + residual[m, n]) for up to 8
//                   rows on NVIDIA's tensor cores: the time of reading the weights
//
//   With NORM src[0, k] is divided by sqrt(sum over j of src[0, j]^2 / depth + epsilon) first, and multiplied by
//   norm_weight[k]. With GATED dst is act(...) * sum over k of src[m, k] * weights2[n, k]. With TURN the
//   columns are heads of 2 * APART, whose pairs (j, j + APART) are turned by angles, as rotate/rotate.cl does.
//   With UPDATE the rows replace a part of dst.
//
// Shapes    src: [rows, depth], depth a multiple of 64; packed: as pack_warps_nvidia.cl writes it;
//           bias: [cols]; dst: [rows, cols]; with BLOCKS block_scales: [cols, depth / block], block a
//           multiple of 32; with NORM norm_weight: [depth]; with GATED packed2, and scales2 [cols] or
//           block_scales2 [cols, depth / block], of weights2; with TURN cosine, sine: [APART], with
//           FULL [2 * APART]; with UPDATE the rows begin at element `inner` * start[axis] of dst, but at most
//           at `inner` * most; with UPDATE 2 old: as dst, of `elements`
// Launch    a work-group per TILES tiles, of 16 columns each, whose warps share the depth; the columns are two runs
//           of 8, APART from one begin to the other: local = (TILES * WARPS * 32, 1, 1), global =
//           (ceil(ceil(cols / 16) / TILES) * local, 1, 1)
// Macros    WARPS     4..16  warps of a tile
//           TILES     1..4   tiles of a work-group
//           AHEAD     1..16  steps of 64 elements that a warp has begun to read
//           ROWS      1..8   rows; up to 4 with SPLIT, 1 with NORM or TURN
//           DIGITS    0|3    3: each element of src is rounded to a multiple of 2^-22 of the row's largest
//                            one, which has three digits of base 256, and the tensor cores multiply bytes;
//                            ROWS is 1 or 2, BITS 4 or 8, BLOCKS and SPLIT are 0
//           SPLIT     0|1    1: src is float, and each element the sum of two halves: 22 bits of mantissa
//           DEPTH     multiple of 64  depth
//           BITS      4|8|16  of a weight: integers, or half
//           BLOCKS    0|1    1: `block` elements of a row share a scale; SCALED is 0
//           NORM      0|1    1: rows of src are normalised
//           GATED     0|1    1: the result is multiplied by another product; RESIDUAL is 0
//           TURN      0|1    1: pairs of columns are turned; cols is a multiple of 2 * APART
//           APART     8..    columns, a multiple of 8; 8 without TURN
//           FULL      0|1    1: both numbers of a pair have a cosine and a sine of their own
//           UPDATE    0..2   1: the other elements of dst stay, 2: they are those of old; SLICED is 0
//           MMA_TYPE  0|2    see common/mma.cl; 2 with DIGITS
//           SRC_T, DST_T  float|half  element types; src is half without SPLIT and DIGITS
//           NORM_T if NORM == 1  float|half  element type of norm_weight
//           COS_T, SIN_T if TURN == 1  float|half  element types of cosine and sine
//           INDEX_T if UPDATE  int|long  element type of start
//           and those of common/epilogue.cl
// Numerics  products of halves are exact, sums are float; warps are added in order, the bias last. With
//           SPLIT, elements beyond 65504 count as 65504. What NORM computes is rounded to half without SPLIT.
//           With DIGITS the error of an element is relative to the largest of its row; a row with an infinity or a NaN
//           gives NaN, one whose elements are all below 1e-30 counts as zero
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"
#include "fully_connected/blocks.cl"

#if DIGITS
#define PARTS (DIGITS * ROWS)  // rows of right operands
#elif SPLIT
#define PARTS (2 * ROWS)
#else
#define PARTS ROWS
#endif
#define ITEMS (TILES * WARPS * 32)
#define STEP 64  // elements of depth, in four products of 16
#define STEPS (DEPTH / STEP)
#define MATRICES (1 + GATED)
// READS: of 16 bytes that a lane makes in a step

#if DIGITS && BITS == 8
#define READS 2
#define LEFT(w, j) ((w)[j])
#elif DIGITS
#define READS 1
// Sixteen times the weights, as bytes.
#define LEFT(w, j) (((j) == 0 ? (w)[0] : (w)[0] << 4) & 0xF0F0F0F0u)
#elif BITS == 16
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

#define PIECES (DEPTH / 8)  // of eight elements, in a row
#if DIGITS
#define NOT_A_NUMBER as_float(0x7fc00000u)
// Four bytes of a (0 to 3) and b (4 to 7), which the hexadecimal digits of `select` name, the lowest first.
uint bytes_of(uint a, uint b, uint select) {
  uint v;
  __asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(select));
  return v;
}
#endif
// Vectors of 16 bytes of a row in local memory; rows begin at different banks.
#if DIGITS
#define PITCH ((DEPTH / 16 + 7) / 8 * 8 + 4)
#else
#define PITCH (DEPTH / 8 + 1)
#endif
// Pieces of a work-item.
#define OWN_PIECES ((ROWS * PIECES + ITEMS - 1) / ITEMS)

#if NORM
#define NORM_PARAMS , __global const NORM_T *norm_weight, float epsilon
#define EPSILON epsilon
#else
#define NORM_PARAMS
#define EPSILON 0.0f
#endif
#if GATED
#define PACKED2(i) packed2[i]
#else
#define PACKED2(i) (uint4)(0)
#endif
#if GATED && BLOCKS
#define GATED_PARAMS , __global const uint4 *packed2, __global const float *block_scales2
#define SCALES_OF(m) ((m) > 0 ? block_scales2 : block_scales)
#define SCALE2_AT(o) 1.0f
#elif GATED && SCALED
#define GATED_PARAMS , __global const uint4 *packed2, __global const float *scales2
#define SCALE2_AT(o) scales2[o]
#elif GATED
#define GATED_PARAMS , __global const uint4 *packed2
#define SCALE2_AT(o) 1.0f
#else
#define GATED_PARAMS
#define SCALES_OF(m) block_scales
#define SCALE2_AT(o) 1.0f
#endif

#if TURN
#define TURN_PARAMS , __global const COS_T *cosine, __global const SIN_T *sine
#else
#define TURN_PARAMS
#endif
#if UPDATE == 2
#define UPDATE_PARAMS                                                                        \
  , __global const INDEX_T *start, int axis, int most, int inner, __global const DST_T *old, \
      int elements
#elif UPDATE
#define UPDATE_PARAMS , __global const INDEX_T *start, int axis, int most, int inner
#else
#define UPDATE_PARAMS
#endif

// Whether there is a step s; no test is left where each warp has as many.
#define IS_STEP(s) (STEPS % (WARPS * AHEAD) == 0 || (s) < STEPS)
#define READ_STEP(to, s)                                                    \
  do {                                                                      \
    if (IS_STEP(s)) {                                                       \
      _Pragma("unroll") for (int i = 0; i < READS; ++i) {                   \
        (to)[0][i] = packed[((s) * READS + i) * 32];                        \
        if (GATED) (to)[MATRICES - 1][i] = PACKED2(((s) * READS + i) * 32); \
      }                                                                     \
    }                                                                       \
  } while (0)

#if DIGITS
// Writes eight elements, up to 2^22, to local memory as digits of base 256, -128 to 127: `right` has those of the
// lowest digit, digits are `apart` vectors of 8 bytes from each other.
void put_digits(__local uint2 *right, int apart, float8 v) {
  // With a digit of 128 more they are the bytes of a number.
  const uint8 x = as_uint8(convert_int8_rte(v)) + 0x808080u;
  uint4 first, second;  // of two neighbours each: the lowest digits and the next ones; the highest
  first = (uint4)(bytes_of(x.s0, x.s1, 0x5140u), bytes_of(x.s2, x.s3, 0x5140u),
                  bytes_of(x.s4, x.s5, 0x5140u), bytes_of(x.s6, x.s7, 0x5140u));
  second = (uint4)(bytes_of(x.s0, x.s1, 0x0062u), bytes_of(x.s2, x.s3, 0x0062u),
                   bytes_of(x.s4, x.s5, 0x0062u), bytes_of(x.s6, x.s7, 0x0062u));
  right[0] = 0x80808080u ^
             (uint2)(bytes_of(first.s0, first.s1, 0x5410u), bytes_of(first.s2, first.s3, 0x5410u));
  right[apart] = 0x80808080u ^ (uint2)(bytes_of(first.s0, first.s1, 0x7632u),
                                       bytes_of(first.s2, first.s3, 0x7632u));
  right[2 * apart] = 0x80808080u ^ (uint2)(bytes_of(second.s0, second.s1, 0x5410u),
                                           bytes_of(second.s2, second.s3, 0x5410u));
}
#elif SPLIT || NORM
uint4 halves_of(float8 v) {
  return (uint4)(to_halves(v.s0, v.s1), to_halves(v.s2, v.s3), to_halves(v.s4, v.s5),
                 to_halves(v.s6, v.s7));
}
float8 floats_of(uint4 h) {
  return (float8)(from_halves(h.s0), from_halves(h.s1), from_halves(h.s2), from_halves(h.s3));
}
// Writes eight elements to local memory: those from piece `at` on of the first row of a row's halves.
void put(__local uint4 *right, int at, float8 v) {
#if SPLIT
  v = select(v, (float8)(65504.0f), v > 65504.0f);
  v = select(v, (float8)(-65504.0f), v < -65504.0f);
#endif
  const uint4 high = halves_of(v);
  right[at] = high;
#if SPLIT
  right[at + ROWS * PITCH] = halves_of(v - floats_of(high));
#endif
}
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void fully_connected_warps(
    __global const SRC_T *src, __global const uint4 *packed,
    BLOCK_SCALES_PARAM BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
    int depth BLOCK_PARAM NORM_PARAMS GATED_PARAMS TURN_PARAMS UPDATE_PARAMS) {
  LOCAL_LINES(uint4, right, PARTS * PITCH);
  LOCAL_ARRAY(MMA_SUM_T, partials, TILES * MATRICES * WARPS * 16 * PARTS);
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32 % WARPS;  // of its tile
  const int g = lane / 4, q = lane % 4;
  const int slot = item / (WARPS * 32), tile = get_group_id(0) * TILES + slot;
  const int n0 = tile / (APART / 8) * (2 * APART) + tile % (APART / 8) * 8;
  const int tiles = (cols + 15) / 16;
  const size_t begin_of_tile = (size_t)min(tile, tiles - 1) * (STEPS * READS * 32) + lane;
  packed += begin_of_tile;  // a tile past the end computes the last one, and stores nothing
#if GATED
  packed2 += begin_of_tile;
#endif
  // All that a work-item reads from global memory is on its way before it waits for any of it.
  uint4 ring[AHEAD][MATRICES][READS];
#pragma unroll
  for (int a = 0; a < AHEAD; ++a) READ_STEP(ring[a], warp + a * WARPS);
  OPERANDS_READY();
#if UPDATE
  const long wanted = LOAD(INDEX_T, start, axis);
  const int begin_of_rows = (int)clamp(wanted, 0L, (long)most) * inner;
  const bool keeps = KEEPS_RESULTS();
#else
  const int begin_of_rows = 0;
  const bool keeps = true;
#endif
#if UPDATE == 2
  for (int at = get_group_id(0) * ITEMS + item; at < elements;
       at += (int)get_num_groups(0) * ITEMS) {
    if (at < begin_of_rows || at >= begin_of_rows + rows * cols)
      STORE(DST_T, dst, at, LOAD(DST_T, old, at));
  }
#endif
  const int second_run = item / 8 % 2;
  const int n = n0 + item % 8 + second_run * APART;  // the column that it finishes
  const int own = min(n, cols - 1);
  const CHANNEL_T channel = CHANNEL_AT(own);
  const float scale2 = SCALE2_AT(own);
#if TURN
  const int angle = n % APART + (FULL ? second_run * APART : 0);
  const float cosine_of = LOAD(COS_T, cosine, angle), sine_of = LOAD(SIN_T, sine, angle);
#endif
#if DIGITS
  float8 x[OWN_PIECES];
  float squares = 0.0f, largest[ROWS];  // the largest element of a row
#pragma unroll
  for (int r = 0; r < ROWS; ++r) largest[r] = 0.0f;
#pragma unroll
  for (int i = 0; i < OWN_PIECES; ++i) {
    const int at = i * ITEMS + item;
    if (at >= ROWS * PIECES) continue;
    x[i] = LOAD8_ALIGNED(SRC_T, src, at * 8);
#if NORM
    const float8 square = x[i] * x[i];
    const float4 sum4 = square.lo + square.hi;
    squares += (sum4.s0 + sum4.s1) + (sum4.s2 + sum4.s3);
    x[i] *= LOAD8_ALIGNED(NORM_T, norm_weight, at * 8);
#endif
    const float8 size8 = select(fabs(x[i]), (float8)(INFINITY), isnan(x[i]));
    const float4 size4 = fmax(size8.lo, size8.hi);
    const float size = fmax(fmax(size4.s0, size4.s1), fmax(size4.s2, size4.s3));
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      largest[r] = at / PIECES == r ? fmax(largest[r], size) : largest[r];
  }
  __local float *const of_warps = (__local float *)partials;
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    if (NORM) squares += as_float(shuffle_xor(as_uint(squares), bits));
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      largest[r] = fmax(largest[r], as_float(shuffle_xor(as_uint(largest[r]), bits)));
  }
  if (lane == 0) {
    of_warps[item / 32] = squares;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) of_warps[(r + 1) * TILES * WARPS + item / 32] = largest[r];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  squares = 0.0f;
  float unit[ROWS];  // what the lowest digit counts
#pragma unroll
  for (int w = 0; w < TILES * WARPS; ++w) squares += of_warps[w];
  const float factor = NORM ? 1.0f / sqrt(squares / DEPTH + EPSILON) : 1.0f;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int w = 0; w < TILES * WARPS; ++w)
      largest[r] = fmax(largest[r], of_warps[(r + 1) * TILES * WARPS + w]);
    unit[r] = largest[r] < 1e-30f      ? 0.0f
              : largest[r] == INFINITY ? NOT_A_NUMBER
                                       : largest[r] * 0x1p-22f;
  }
#pragma unroll
  for (int i = 0; i < OWN_PIECES; ++i) {
    const int at = i * ITEMS + item;
    if (at >= ROWS * PIECES) continue;
    const int r = at / PIECES;
    float own_unit = unit[0];
#pragma unroll
    for (int other = 1; other < ROWS; ++other) own_unit = r == other ? unit[other] : own_unit;
    put_digits((__local uint2 *)right + r * (2 * PITCH) + at % PIECES, ROWS * (2 * PITCH),
               own_unit == 0.0f ? (float8)(0.0f) : x[i] * (1.0f / own_unit));
  }
#elif NORM
  float8 x[OWN_PIECES];
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < OWN_PIECES; ++i) {
    const int at = i * ITEMS + item;
    if (at < PIECES) {
      x[i] = LOAD8_ALIGNED(SRC_T, src, at * 8);
      const float8 square = x[i] * x[i];
      const float4 sum4 = square.lo + square.hi;
      squares += (sum4.s0 + sum4.s1) + (sum4.s2 + sum4.s3);
      x[i] *= LOAD8_ALIGNED(NORM_T, norm_weight, at * 8);
    }
  }
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) squares += as_float(shuffle_xor(as_uint(squares), bits));
  if (lane == 0) partials[item / 32] = squares;
  barrier(CLK_LOCAL_MEM_FENCE);
  squares = 0.0f;
#pragma unroll
  for (int w = 0; w < TILES * WARPS; ++w) squares += partials[w];
  const float factor = 1.0f / sqrt(squares / DEPTH + EPSILON);
#pragma unroll
  for (int i = 0; i < OWN_PIECES; ++i) {
    const int at = i * ITEMS + item;
    if (at < PIECES) put(right, at, factor * x[i]);
  }
#else
#pragma unroll 4
  for (int begin = 0; begin < ROWS * PIECES; begin += ITEMS) {
    const int i = begin + item;
    if (begin + ITEMS > ROWS * PIECES && i >= ROWS * PIECES) break;
    const int at = i / PIECES * PITCH + i % PIECES;
#if SPLIT
    put(right, at, LOAD8_ALIGNED(SRC_T, src, i * 8));
#else
    right[at] = ((__global const uint4 *)src)[i];
#endif
  }
#endif
  barrier(CLK_LOCAL_MEM_FENCE);

  MMA_SUM4_T sums[MATRICES][2];
#pragma unroll
  for (int m = 0; m < MATRICES; ++m) sums[m][0] = sums[m][1] = 0;
#if BLOCKS
  const int blocks = DEPTH / block;
  const int first = min(n0 + g, cols - 1) * blocks, second = min(n0 + g + APART, cols - 1) * blocks;
#endif
  for (int begin = warp; begin < STEPS; begin += WARPS * AHEAD) {
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      const int s = begin + a * WARPS;
      if (!IS_STEP(s)) break;
      // Rows that do not exist are zero.
#if DIGITS
      uint4 bytes = 0;
      if (g < PARTS) bytes = right[g * PITCH + s * 4 + q];
#pragma unroll
      for (int m = 0; m < MATRICES; ++m) {
        uint4 left = LEFT(ring[a][m], 0);
        MMA(sums[m][0], left, bytes.s0, bytes.s1);
        left = LEFT(ring[a][m], 1);
        MMA(sums[m][1], left, bytes.s2, bytes.s3);
      }
#else
      uint4 x0 = 0, x1 = 0;
      if (g < PARTS) {
        x0 = right[g * PITCH + s * 8 + q];
        x1 = right[g * PITCH + s * 8 + 4 + q];
      }
#pragma unroll
      for (int m = 0; m < MATRICES; ++m) {
#if BLOCKS
        float4 low = 0.0f, high = 0.0f;
#else
        float4 low = sums[m][0], high = sums[m][1];
#endif
        uint4 left = LEFT(ring[a][m], 0);
        MMA(low, left, x0.s0, x0.s1);
        left = LEFT(ring[a][m], 1);
        MMA(low, left, x0.s2, x0.s3);
        left = LEFT(ring[a][m], 2);
        MMA(high, left, x1.s0, x1.s1);
        left = LEFT(ring[a][m], 3);
        MMA(high, left, x1.s2, x1.s3);
#if BLOCKS
        __global const float *scales = SCALES_OF(m);
        const int at0 = s * STEP / block, at1 = (s * STEP + 32) / block;
        sums[m][0] += low * (float4)((float2)(scales[first + at0]), (float2)(scales[second + at0]));
        sums[m][1] +=
            high * (float4)((float2)(scales[first + at1]), (float2)(scales[second + at1]));
#else
        sums[m][0] = low;
        sums[m][1] = high;
#endif
      }
#endif
      if (WARPS * AHEAD < STEPS && s + WARPS * AHEAD < STEPS) READ_STEP(ring[a], s + WARPS * AHEAD);
    }
  }
  __local MMA_SUM_T *const partial = partials + slot * (MATRICES * WARPS * 16 * PARTS);
  // A lane has rows 2q and 2q + 1 of columns g and g + 8.
#pragma unroll
  for (int m = 0; m < MATRICES; ++m) {
    const MMA_SUM4_T sum = sums[m][0] + sums[m][1];
    const int at = (m * WARPS + warp) * 16 + g;
    if (2 * q < PARTS) {
      partial[at * PARTS + 2 * q] = sum.s0;
      partial[(at + 8) * PARTS + 2 * q] = sum.s2;
    }
    if (2 * q + 1 < PARTS) {
      partial[at * PARTS + 2 * q + 1] = sum.s1;
      partial[(at + 8) * PARTS + 2 * q + 1] = sum.s3;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int m = item % (WARPS * 32) / 16;
  const bool finishes = m < ROWS && n < cols;
  float result = 0.0f;
  if (finishes) {
    float totals[MATRICES];
#pragma unroll
    for (int i = 0; i < MATRICES; ++i) {
#if DIGITS
      int of_digits[DIGITS];
#pragma unroll
      for (int d = 0; d < DIGITS; ++d) {
        of_digits[d] = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w)
          of_digits[d] += partial[((i * WARPS + w) * 16 + item % 16) * PARTS + d * ROWS + m];
      }
      float own_unit = unit[0];
#pragma unroll
      for (int r = 1; r < ROWS; ++r) own_unit = m == r ? unit[r] : own_unit;
      totals[i] = (of_digits[2] * 65536.0f + (of_digits[1] * 256.0f + of_digits[0])) *
                  (own_unit * factor * (BITS == 4 ? 0.0625f : 1.0f));
#else
      totals[i] = 0.0f;
#pragma unroll
      for (int w = 0; w < WARPS; ++w) {
#pragma unroll
        for (int part = m; part < PARTS; part += ROWS)
          totals[i] += partial[((i * WARPS + w) * 16 + item % 16) * PARTS + part];
      }
#endif
    }
    result = FINISH_SUM(totals[0], channel, RESULT_AT(m, n, cols));
    if (GATED) result *= totals[MATRICES - 1] * scale2;
  }
#if TURN
  const float other = as_float(shuffle_xor(as_uint(result), 8));
  result = result * cosine_of + (second_run ? other : -other) * sine_of;
#endif
  if (finishes && keeps) STORE(DST_T, dst, begin_of_rows + RESULT_AT(m, n, cols), result);
}
