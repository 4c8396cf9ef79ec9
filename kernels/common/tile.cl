// tile.cl - the tile engine: a work-group's part of c[m, n] = sum over k of a(m, k) * b(k, n)
//
//   ... define TILE_LOAD_A, TILE_LOAD_B, TILE_PUT_A and TILE_PUT_B ...
//   __kernel __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) void f(...) {
//     TILE_BEGIN
//     ...
//     TILE_PRODUCT(begin, end)
//     TILE_STORE(first_row, rows, first_column, columns, pitch, first)
//
// A work-group computes TM rows and TN columns of c. In steps of depth TK its items load elements into
// registers, write them to local memory and multiply: an item keeps RM x RN sums in registers, as
// blocks of 4 x 4 that are 4 * TILE_GY rows and 4 * TILE_GX columns apart. While a step is
// multiplied, the elements of the next one are being loaded. SLICES > 1 divides the depth of a step
// among parts of the work-group, whose sums TILE_STORE adds: more items for few tiles.
//
// With int8 an element is a word: four integers that are neighbours along k, in an int (common/dot8.cl).
// k, TK, begin and end then count words; TILE_DEPTH(n) is the depth of n integers in words.
//
// TILE_LOAD_A(v, step)   fills QUAD_T v[TILE_AQ], the item's quads of a for k = step .. step + TK - 1,
//                        zero outside of a; TILE_LOAD_B: v[TILE_BQ] of b
// TILE_PUT_A(stage, v)   writes them to a stage in local memory; TILE_PUT_B likewise
// TILE_PUT_K4            the same for quads of four k of one row (or column): quad q of an item belongs to
//                        row TILE_K4_ROW(q), k = TILE_K4_K(q) .. + 3 of the step
// TILE_PUT_N4            the same for quads of four rows (or columns) of one k: TILE_N4_AT(q, width)
//                        .. + 3 of `width`, k = TILE_N4_K(q, width)
//
// Macros    TM, TN     rows and columns of a tile: multiples of RM and RN
//           TK         depth of a step: a multiple of 4 * SLICES; TK / 4 divides the number of items
//           RM, RN     rows and columns of an item: multiples of 4
//           SLICES     1|2|4|8  parts of a work-group that share the depth of a step
//           VEC_N      0|1  1: every row of c begins at a multiple of 4 and has a multiple of 4 columns
//           TILE_ARITH 0..2  0 float; 1 half: elements are rounded to half, products and the sum of a step
//                      are computed in half; 2 int8
//           DOT8 if TILE_ARITH == 2    0..3, see common/dot8.cl
//           A_SUMS if TILE_ARITH == 2  0|1  1: b has the zero point b_zero, an int in scope: products are
//                      a * (b - b_zero)
//           B_SUMS if TILE_ARITH == 2  0|1  1: a has the zero point a_zero; with both macros the sums lack
//                      a_zero * b_zero for each k
// Numerics  TILE_ARITH 0: products and sums in float, in the order of k within each slice;
//           TILE_ARITH 1: products and sums of TK / SLICES products in half, added to a sum in float;
//           TILE_ARITH 2: exact, modulo 2^32
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"

#define TILE_GX (TN / RN)  // items along the columns
#define TILE_GY (TM / RM)  // ... and along the rows
#define TILE_PLACES (TILE_GX * TILE_GY)
#define TILE_ITEMS (TILE_PLACES * SLICES)
#define TILE_QM (RM / 4)
#define TILE_QN (RN / 4)
#define TILE_SLICE (TK / SLICES)  // depth of a slice's part of a step
#define TILE_QUADS(width) ((width) * TK / 4)
#define TILE_AQ ((TILE_QUADS(TM) + TILE_ITEMS - 1) / TILE_ITEMS)  // quads that an item loads
#define TILE_BQ ((TILE_QUADS(TN) + TILE_ITEMS - 1) / TILE_ITEMS)

// 32 neighbouring items read few rows and few columns of the tile.
#if TILE_GX >= 8 && TILE_PLACES >= 32
#define TILE_COLUMN(i) ((i) / 32 % (TILE_GX / 8) * 8 + (i) % 8)
#define TILE_ROW(i) ((i) / 32 / (TILE_GX / 8) * 4 + (i) % 32 / 8)
#else
#define TILE_COLUMN(i) ((i) % TILE_GX)
#define TILE_ROW(i) ((i) / TILE_GX)
#endif

#include "common/tile_arith.cl"

// A stage is [TK][width + 4]: the padding spreads writes over the banks.
#define TILE_PITCH(width) ((width) / 4 + 1)
#define TILE_A_STAGE (TK * TILE_PITCH(TM))
#define TILE_B_STAGE (TK * TILE_PITCH(TN))
#define TILE_STAGES (TILE_A_STAGE + TILE_B_STAGE)

// Position of the item's quad q in a tile of `width` rows or columns.
#define TILE_QUAD(q) (tile_item + (q) * TILE_ITEMS)
#define TILE_K4_K(q) (TILE_QUAD(q) % (TK / 4) * 4)
#define TILE_K4_ROW(q) (TILE_QUAD(q) / (TK / 4))
#define TILE_N4_K(q, width) (TILE_QUAD(q) / ((width) / 4))
#define TILE_N4_AT(q, width) (TILE_QUAD(q) % ((width) / 4) * 4)
#define TILE_HAS(q, width) (TILE_QUADS(width) % TILE_ITEMS == 0 || TILE_QUAD(q) < TILE_QUADS(width))

#define TILE_PUT_K4(stage, width, v, count)                                                \
  _Pragma("unroll") for (int q = 0; q < (count); ++q) {                                    \
    if (TILE_HAS(q, width)) {                                                              \
      __local TILE_T *to_ =                                                                \
          (__local TILE_T *)((stage) + TILE_K4_K(q) * TILE_PITCH(width)) + TILE_K4_ROW(q); \
      const TILE_VEC v_ = TILE_CONVERT((v)[q]);                                            \
      to_[0] = v_.s0;                                                                      \
      to_[4 * TILE_PITCH(width)] = v_.s1;                                                  \
      to_[8 * TILE_PITCH(width)] = v_.s2;                                                  \
      to_[12 * TILE_PITCH(width)] = v_.s3;                                                 \
    }                                                                                      \
  }
#define TILE_PUT_N4(stage, width, v, count)                                         \
  _Pragma("unroll") for (int q = 0; q < (count); ++q) {                             \
    if (TILE_HAS(q, width)) {                                                       \
      (stage)[TILE_N4_K(q, width) * TILE_PITCH(width) + TILE_N4_AT(q, width) / 4] = \
          TILE_CONVERT((v)[q]);                                                     \
    }                                                                               \
  }

// The loops must be unrolled, or the sums end up in memory; not every compiler unrolls them by itself
// (PoCL: eight times slower).
//
// Adds the products of a slice's part of a step; a, b: the item's first quads. a_sum, b_sum: sums of
// the rows and columns themselves.
void tile_multiply(__local const TILE_VEC *a, __local const TILE_VEC *b, SUM4_T sum[RM][TILE_QN],
                   SUM4_T a_sum[TILE_QM], SUM4_T b_sum[TILE_QN]) {
#if TILE_ARITH == 1
  half4 part[RM][TILE_QN];
#pragma unroll
  for (int r = 0; r < RM; ++r) {
#pragma unroll
    for (int c = 0; c < TILE_QN; ++c) part[r][c] = (half4)(0.0h);
  }
#define TILE_PART part
#else
#define TILE_PART sum
#endif
#pragma unroll
  for (int k = 0; k < TILE_SLICE; ++k) {
    TILE_VEC right[TILE_QN];
#pragma unroll
    for (int c = 0; c < TILE_QN; ++c) {
      right[c] = b[k * TILE_PITCH(TN) + c * TILE_GX];
#if B_SUMS
      b_sum[c] = TILE_MAD(TILE_ONES, right[c], b_sum[c]);
#endif
    }
#pragma unroll
    for (int q = 0; q < TILE_QM; ++q) {
      const TILE_VEC left = a[k * TILE_PITCH(TM) + q * TILE_GY];
#if A_SUMS
      a_sum[q] = TILE_MAD(TILE_ONES, left, a_sum[q]);
#endif
#pragma unroll
      for (int c = 0; c < TILE_QN; ++c) {
        TILE_PART[q * 4][c] = TILE_MAD(left.s0, right[c], TILE_PART[q * 4][c]);
        TILE_PART[q * 4 + 1][c] = TILE_MAD(left.s1, right[c], TILE_PART[q * 4 + 1][c]);
        TILE_PART[q * 4 + 2][c] = TILE_MAD(left.s2, right[c], TILE_PART[q * 4 + 2][c]);
        TILE_PART[q * 4 + 3][c] = TILE_MAD(left.s3, right[c], TILE_PART[q * 4 + 3][c]);
      }
    }
  }
#if TILE_ARITH == 1
#pragma unroll
  for (int r = 0; r < RM; ++r) {
#pragma unroll
    for (int c = 0; c < TILE_QN; ++c) sum[r][c] += convert_float4(part[r][c]);
  }
#endif
}

// Declares local memory, the item's position and its sums; only allowed in the body of a kernel.
#define TILE_SUMS ((SLICES - 1) * TM * TN / 4)
#define TILE_SUM4S (TILE_ARITH == 1 ? (TILE_STAGES + 1) / 2 : TILE_STAGES)
#define TILE_BEGIN                                                                      \
  LOCAL_ARRAY(SUM4_T, tile_memory, TILE_SUM4S > TILE_SUMS ? TILE_SUM4S : TILE_SUMS);    \
  __local TILE_VEC *const tile_a = (__local TILE_VEC *)tile_memory;                     \
  __local TILE_VEC *const tile_b = tile_a + TILE_A_STAGE;                               \
  const int tile_item = get_local_id(0);                                                \
  const int tile_place = tile_item % TILE_PLACES, tile_slice = tile_item / TILE_PLACES; \
  const int tile_column = TILE_COLUMN(tile_place), tile_row = TILE_ROW(tile_place);     \
  SUM4_T tile_sum[RM][TILE_QN], tile_a_sum[TILE_QM], tile_b_sum[TILE_QN];               \
  _Pragma("unroll") for (int r = 0; r < RM; ++r) {                                      \
    _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) tile_sum[r][c] = (SUM4_T)(0);   \
  }                                                                                     \
  _Pragma("unroll") for (int q = 0; q < TILE_QM; ++q) tile_a_sum[q] = (SUM4_T)(0);      \
  _Pragma("unroll") for (int q = 0; q < TILE_QN; ++q) tile_b_sum[q] = (SUM4_T)(0);

// Adds a(m, k) * b(k, n) for k = begin .. end - 1, rounded up to whole steps, to the sums. An iteration
// loads one step and multiplies the previous one.
#define TILE_PRODUCT(begin, end)                                                               \
  for (int step = (begin); step < (end) + TK; step += TK) {                                    \
    QUAD_T a[TILE_AQ], b[TILE_BQ];                                                             \
    if (step < (end)) {                                                                        \
      TILE_LOAD_A(a, step)                                                                     \
      TILE_LOAD_B(b, step)                                                                     \
    }                                                                                          \
    if (step > (begin)) {                                                                      \
      tile_multiply(tile_a + tile_slice * TILE_SLICE * TILE_PITCH(TM) + tile_row,              \
                    tile_b + tile_slice * TILE_SLICE * TILE_PITCH(TN) + tile_column, tile_sum, \
                    tile_a_sum, tile_b_sum);                                                   \
    }                                                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                              \
    if (step < (end)) {                                                                        \
      TILE_PUT_A(tile_a, a)                                                                    \
      TILE_PUT_B(tile_b, b)                                                                    \
    }                                                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                              \
  }                                                                                            \
  TILE_SUBTRACT_ZEROS

#include "common/tile_store.cl"
