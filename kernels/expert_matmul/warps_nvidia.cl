// warps_nvidia.cl - dst[r, n] = act(sum over k of x[X_ROW(r), k] * weights[expert of r, n, k]) for few rows on
//                   NVIDIA's tensor cores: the time of reading the matrices that were chosen
//
// Shapes    x: [.., DEPTH]; weights: [experts, cols, DEPTH]; dst: [rows, cols]; see expert_matmul/place.cl
// Launch    a work-group per TILES tiles of 16 columns, whose warps share the depth, and row; that of the first row
//           with an expert makes all rows that have it, HEIGHT at a time, the others return: local =
//           (TILES * WARPS * 32, 1, 1), global = (ceil(ceil(cols / 16) / TILES) * local, rows)
// Macros    WARPS   4..16  warps of a tile
//           TILES   1..4   tiles of a work-group
//           AHEAD   1..4   steps of 64 elements that a warp has begun to read
//           HEIGHT  1..8   rows for which a matrix is read once; up to 4 with SPLIT
//           WORDS   1|2    rows are at most 32 * WORDS
//           SPLIT   0|1    1: x is float, and each element the sum of two halves: 22 bits of mantissa
//           DEPTH   multiple of 64  depth
//           MMA_TYPE  0    see common/mma.cl
//           X_T, WEIGHTS_T, DST_T  float|half  element types of x, weights, dst; weights are half, x without SPLIT
//           and those of expert_matmul/place.cl (SORTED 0) and common/activation.cl
// Numerics  products of halves are exact, sums are float; warps are added in order. With SPLIT, elements beyond 65504
//           count as 65504
#include "common/activation.cl"
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"
#include "expert_matmul/place.cl"

#define PARTS ((1 + SPLIT) * HEIGHT)  // columns of right operands
#define ITEMS (TILES * WARPS * 32)
#define STEPS (DEPTH / 64)
#define PIECES (DEPTH / 8)  // of eight elements, in a row
#define PITCH (PIECES + 1)  // of them, in local memory: rows begin at different banks

// Whether there is a step s; no test is left where each warp has as many.
#define IS_STEP(s) (STEPS % (WARPS * AHEAD) == 0 || (s) < STEPS)
// Elements 8q .. 8q + 7 and 8q + 32 .. 8q + 39 of step s, of columns g and g + 8.
#define READ_STEP(to, s)                       \
  do {                                         \
    if (reads && IS_STEP(s)) {                 \
      (to)[0] = weights_of[at0 + (s) * 8];     \
      (to)[1] = weights_of[at0 + (s) * 8 + 4]; \
      (to)[2] = weights_of[at1 + (s) * 8];     \
      (to)[3] = weights_of[at1 + (s) * 8 + 4]; \
    }                                          \
  } while (0)
#define READ_FIRST() \
  _Pragma("unroll") for (int a = 0; a < AHEAD; ++a) READ_STEP(ring[a], warp + a * WARPS)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void expert_matmul_warps(
    __global const X_T *x, __global const WEIGHTS_T *weights, PLACE_PARAMS __global DST_T *dst,
    int cols, int depth, int experts, int each, int share, int rows) {
  LOCAL_LINES(uint4, right, PARTS * PITCH);
  LOCAL_ARRAY(float, partials, TILES * WARPS * 16 * PARTS);
  LOCAL_ARRAY(uint, of_first, WORDS + 1);  // what the first work-item has found
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32 % WARPS;  // of its tile
  const int g = lane / 4, q = lane % 4;
  const int slot = item / (WARPS * 32), n0 = ((int)get_group_id(0) * TILES + slot) * 16;
  const int row = get_group_id(1);
  const int expert = EXPERT_OF(row);
  const bool exists = expert >= 0 && expert < experts;
  // A bit for each row that this work-group makes, if it makes any. Rows that belong to no expert are apart.
  uint left_rows[WORDS];
  bool leads = true;
#pragma unroll
  for (int w = 0; w < WORDS; ++w) {
    const int other = w * 32 + lane;
    const int its_expert = EXPERT_OF(min(other, rows - 1));
    left_rows[w] = lanes_with(other == row || (exists && other < rows && its_expert == expert));
    const int before = clamp(row - w * 32, 0, 32);
    leads = leads && (before == 0 || left_rows[w] << (32 - before) == 0);
  }
  const bool reads = leads && exists;
  __global const uint4 *const weights_of =
      (__global const uint4 *)weights + (size_t)(exists ? expert : 0) * cols * PIECES;
  // A tile past the end computes the last column, and stores nothing.
  const int at0 = min(n0 + g, cols - 1) * PIECES + q, at1 = min(n0 + 8 + g, cols - 1) * PIECES + q;
  // Zero, so that what is not read is a number.
  uint4 ring[AHEAD][4];
#pragma unroll
  for (int a = 0; a < AHEAD; ++a) ring[a][0] = ring[a][1] = ring[a][2] = ring[a][3] = 0;
  READ_FIRST();
  OPERANDS_READY();
  // In a chain that has given up, indices may be written meanwhile, and all warps must meet at the same barriers.
  if (item == 0) {
#pragma unroll
    for (int w = 0; w < WORDS; ++w) of_first[w] = left_rows[w];
    of_first[WORDS] = leads;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int w = 0; w < WORDS; ++w) left_rows[w] = of_first[w];

  for (bool more = of_first[WORDS] != 0; more;) {
    int made[HEIGHT];  // -1: none
#pragma unroll
    for (int i = 0; i < HEIGHT; ++i) {
      made[i] = -1;
#pragma unroll
      for (int w = 0; w < WORDS; ++w) {
        if (made[i] < 0 && left_rows[w] != 0) {
          made[i] = w * 32 + 31 - clz(left_rows[w] & -left_rows[w]);
          left_rows[w] &= left_rows[w] - 1;
        }
      }
      if (made[i] < 0) continue;
      const int from = X_ROW(made[i]) * PIECES;
#pragma unroll 4
      for (int piece = item; piece < PIECES; piece += ITEMS) {
#if SPLIT
        const float8 v = LOAD8_ALIGNED(X_T, x, (from + piece) * 8);
        const float8 clamped =
            select(select(v, (float8)(65504.0f), v > 65504.0f), (float8)(-65504.0f), v < -65504.0f);
        const uint4 high = as_halves8(clamped);
        right[i * PITCH + piece] = high;
        right[(HEIGHT + i) * PITCH + piece] = as_halves8(clamped - from_halves8(high));
#else
        right[i * PITCH + piece] = ((__global const uint4 *)x)[from + piece];
#endif
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    float4 sums[2];
    sums[0] = sums[1] = 0.0f;
    if (reads) {
      for (int begin = warp; begin < STEPS; begin += WARPS * AHEAD) {
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
          const int s = begin + a * WARPS;
          if (!IS_STEP(s)) break;
          uint4 x0 = 0, x1 = 0;
          if (g < PARTS) {
            x0 = right[g * PITCH + s * 8 + q];
            x1 = right[g * PITCH + s * 8 + 4 + q];
          }
          const uint4 upper0 = ring[a][0], upper1 = ring[a][1];
          const uint4 lower0 = ring[a][2], lower1 = ring[a][3];
          MMA(sums[0], (uint4)(upper0.s0, lower0.s0, upper0.s1, lower0.s1), x0.s0, x0.s1);
          MMA(sums[0], (uint4)(upper0.s2, lower0.s2, upper0.s3, lower0.s3), x0.s2, x0.s3);
          MMA(sums[1], (uint4)(upper1.s0, lower1.s0, upper1.s1, lower1.s1), x1.s0, x1.s1);
          MMA(sums[1], (uint4)(upper1.s2, lower1.s2, upper1.s3, lower1.s3), x1.s2, x1.s3);
          if (WARPS * AHEAD < STEPS && s + WARPS * AHEAD < STEPS)
            READ_STEP(ring[a], s + WARPS * AHEAD);
        }
      }
    }
    more = false;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) more = more || left_rows[w] != 0;
    if (more) READ_FIRST();
    // A lane has rows 2q and 2q + 1 of columns g and g + 8.
    __local float *const partial = partials + (slot * WARPS + warp) * (16 * PARTS);
    const float4 sum = sums[0] + sums[1];
    if (2 * q < PARTS) {
      partial[g * PARTS + 2 * q] = sum.s0;
      partial[(g + 8) * PARTS + 2 * q] = sum.s2;
    }
    if (2 * q + 1 < PARTS) {
      partial[g * PARTS + 2 * q + 1] = sum.s1;
      partial[(g + 8) * PARTS + 2 * q + 1] = sum.s3;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int m = item % (WARPS * 32) / 16, n = n0 + item % 16;
    int own = -1;  // row that it finishes
#pragma unroll
    for (int i = 0; i < HEIGHT; ++i) own = m == i ? made[i] : own;
    if (own >= 0 && n < cols) {
      float total = 0.0f;
#pragma unroll
      for (int w = 0; w < WARPS; ++w) {
#pragma unroll
        for (int part = 0; part <= SPLIT; ++part)
          total += partials[((slot * WARPS + w) * 16 + item % 16) * PARTS + part * HEIGHT + m];
      }
      STORE(DST_T, dst, (size_t)own * cols + n, ACTIVATE(total));
    }
  }
}
