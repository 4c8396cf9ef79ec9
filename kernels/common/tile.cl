// tile.cl - the tile engine: a work-group's part of c[m, n] = sum over k of a(m, k) * b(k, n)
//
//   ... define TILE_LOAD_A, TILE_LOAD_B, TILE_PUT_A and TILE_PUT_B ...
//   __kernel __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) void f(...) {
//     TILE_BEGIN
//     ...
//     TILE_PRODUCT(begin, end)
//     TILE_STORE(first_row, rows, first_column, columns, pitch, first)
//
// A work-group keeps TM rows and TN columns of c. In steps of TK of depth its items load elements to
// registers, put them down in local memory and multiply: an item keeps RM x RN sums in registers, as
// blocks of 4 x 4 that lie 4 * TILE_GY rows and 4 * TILE_GX columns apart. While a step is
// multiplied the elements of the next are on their way. SLICES > 1 deals the depth of a step out to
// parts of the work-group, whose sums TILE_STORE adds: more items for few tiles.
//
// TILE_LOAD_A(v, step)   fills float4 v[TILE_AQ], the item's quads of a for k = step .. step + TK - 1,
//                        zero outside of a; TILE_LOAD_B: v[TILE_BQ] of b
// TILE_PUT_A(stage, v)   puts them down; TILE_PUT_B likewise
// TILE_PUT_K4            does so for quads of four k of one row (or column): quad q of an item is of
//                        row TILE_K4_ROW(q), k = TILE_K4_K(q) .. + 3 of the step
// TILE_PUT_N4            does so for quads of four rows (or columns) of one k: TILE_N4_AT(q, width)
//                        .. + 3 of `width`, k = TILE_N4_K(q, width)
//
// Macros    TM, TN     rows and columns of a tile: multiples of RM and RN
//           TK         depth of a step: a multiple of 4 * SLICES; TK / 4 divides the number of items
//           RM, RN     rows and columns of an item: multiples of 4
//           SLICES     parts of a work-group that share the depth of a step
//           VEC_N      1: every row of c begins at a multiple of 4 and has such a number of columns
//           HALF_SUMS  1: elements are rounded to half; products and the sum of a step are half
// Numerics  HALF_SUMS 0: products and sums in float, in the order of k, of each slice;
//           HALF_SUMS 1: products and sums of TK / SLICES of them in half, added to a sum in float
#include "common/epilogue.cl"
#include "common/types.cl"
#ifndef TM
#error "TM is required (multiple of RM)"
#endif
#ifndef TN
#error "TN is required (multiple of RN)"
#endif
#ifndef TK
#error "TK is required (multiple of 4)"
#endif
#ifndef RM
#error "RM is required (multiple of 4)"
#endif
#ifndef RN
#error "RN is required (multiple of 4)"
#endif
#ifndef SLICES
#error "SLICES is required (1, 2, 4 or 8)"
#endif
#ifndef VEC_N
#error "VEC_N is required (0 or 1)"
#endif
#ifndef HALF_SUMS
#error "HALF_SUMS is required (0 or 1)"
#endif

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

// 32 neighbours read few rows and few columns of the tile.
#if TILE_GX >= 8 && TILE_PLACES >= 32
#define TILE_COLUMN(i) ((i) / 32 % (TILE_GX / 8) * 8 + (i) % 8)
#define TILE_ROW(i) ((i) / 32 / (TILE_GX / 8) * 4 + (i) % 32 / 8)
#else
#define TILE_COLUMN(i) ((i) % TILE_GX)
#define TILE_ROW(i) ((i) / TILE_GX)
#endif

#if HALF_SUMS
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define TILE_T half
#define TILE_VEC half4
#define TILE_CONVERT(v) convert_half4(v)
#else
#define TILE_T float
#define TILE_VEC float4
#define TILE_CONVERT(v) (v)
#endif

// Stages lie as [TK][width + 4]: the padding spreads what is put down over the banks.
#define TILE_PITCH(width) ((width) / 4 + 1)
#define TILE_A_STAGE (TK * TILE_PITCH(TM))
#define TILE_B_STAGE (TK * TILE_PITCH(TN))
#define TILE_STAGES (TILE_A_STAGE + TILE_B_STAGE)

// Which quad q of the item is, in a tile of `width` rows or columns.
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

// The loops must be unrolled, else the sums lie in memory; not every compiler sees that by itself
// (PoCL: eight times slower).
//
// Adds the products of a slice's part of a step; a, b: the item's first quads.
void tile_multiply(__local const TILE_VEC *a, __local const TILE_VEC *b, float4 sum[RM][TILE_QN]) {
#if HALF_SUMS
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
    for (int c = 0; c < TILE_QN; ++c) right[c] = b[k * TILE_PITCH(TN) + c * TILE_GX];
#pragma unroll
    for (int q = 0; q < TILE_QM; ++q) {
      const TILE_VEC left = a[k * TILE_PITCH(TM) + q * TILE_GY];
#pragma unroll
      for (int c = 0; c < TILE_QN; ++c) {
        TILE_PART[q * 4][c] = mad((TILE_VEC)(left.s0), right[c], TILE_PART[q * 4][c]);
        TILE_PART[q * 4 + 1][c] = mad((TILE_VEC)(left.s1), right[c], TILE_PART[q * 4 + 1][c]);
        TILE_PART[q * 4 + 2][c] = mad((TILE_VEC)(left.s2), right[c], TILE_PART[q * 4 + 2][c]);
        TILE_PART[q * 4 + 3][c] = mad((TILE_VEC)(left.s3), right[c], TILE_PART[q * 4 + 3][c]);
      }
    }
  }
#if HALF_SUMS
#pragma unroll
  for (int r = 0; r < RM; ++r) {
#pragma unroll
    for (int c = 0; c < TILE_QN; ++c) sum[r][c] += convert_float4(part[r][c]);
  }
#endif
}

// Declares local memory, the item's place and its sums; only allowed in the body of a kernel.
#define TILE_SUMS ((SLICES - 1) * TM * TN / 4)
#define TILE_FLOAT4S (HALF_SUMS ? (TILE_STAGES + 1) / 2 : TILE_STAGES)
#define TILE_BEGIN                                                                       \
  __local float4 tile_memory[TILE_FLOAT4S > TILE_SUMS ? TILE_FLOAT4S : TILE_SUMS];       \
  __local TILE_VEC *const tile_a = (__local TILE_VEC *)tile_memory;                      \
  __local TILE_VEC *const tile_b = tile_a + TILE_A_STAGE;                                \
  const int tile_item = get_local_id(0);                                                 \
  const int tile_place = tile_item % TILE_PLACES, tile_slice = tile_item / TILE_PLACES;  \
  const int tile_column = TILE_COLUMN(tile_place), tile_row = TILE_ROW(tile_place);      \
  float4 tile_sum[RM][TILE_QN];                                                          \
  _Pragma("unroll") for (int r = 0; r < RM; ++r) {                                       \
    _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) tile_sum[r][c] = (float4)(0.0f); \
  }

// Adds a(m, k) * b(k, n) for k = begin .. end - 1, rounded up to whole steps, to the sums. A turn loads
// one step and multiplies the one before.
#define TILE_PRODUCT(begin, end)                                                                \
  for (int step = (begin); step < (end) + TK; step += TK) {                                     \
    float4 a[TILE_AQ], b[TILE_BQ];                                                              \
    if (step < (end)) {                                                                         \
      TILE_LOAD_A(a, step)                                                                      \
      TILE_LOAD_B(b, step)                                                                      \
    }                                                                                           \
    if (step > (begin)) {                                                                       \
      tile_multiply(tile_a + tile_slice * TILE_SLICE * TILE_PITCH(TM) + tile_row,               \
                    tile_b + tile_slice * TILE_SLICE * TILE_PITCH(TN) + tile_column, tile_sum); \
    }                                                                                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    if (step < (end)) {                                                                         \
      TILE_PUT_A(tile_a, a)                                                                     \
      TILE_PUT_B(tile_b, b)                                                                     \
    }                                                                                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
  }

// Brings the sums of all slices to slice 0, the only one that stores.
#if SLICES > 1
#define TILE_KEPT(slice, r, c) \
  tile_memory[(((slice) * RM + (r)) * TILE_QN + (c)) * TILE_PLACES + tile_place]
#define TILE_SUM_SLICES                                          \
  if (tile_slice > 0) {                                          \
    _Pragma("unroll") for (int r = 0; r < RM; ++r) {             \
      _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) {      \
        TILE_KEPT(tile_slice - 1, r, c) = tile_sum[r][c];        \
      }                                                          \
    }                                                            \
  }                                                              \
  barrier(CLK_LOCAL_MEM_FENCE);                                  \
  if (tile_slice == 0) {                                         \
    _Pragma("unroll") for (int r = 0; r < RM; ++r) {             \
      _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) {      \
        _Pragma("unroll") for (int s = 0; s < SLICES - 1; ++s) { \
          tile_sum[r][c] += TILE_KEPT(s, r, c);                  \
        }                                                        \
      }                                                          \
    }                                                            \
  }
#else
#define TILE_SUM_SLICES
#endif

// Stores what lies inside of c: row m, column n at m * pitch + first + n, or where that lies of a
// result that is a slice; the channel of bias is first + n.
#define TILE_STORE(first_row, rows, first_column, columns, pitch, first)          \
  {                                                                               \
    TILE_SUM_SLICES                                                               \
    _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) {                         \
      const int n = (first_column) + (c * TILE_GX + tile_column) * 4;             \
      const int left_over = tile_slice == 0 ? (columns) - n : 0;                  \
      if (left_over > 0) {                                                        \
        float4 bias4 = (float4)(0.0f);                                            \
        if (BIAS) {                                                               \
          bias4.s0 = BIAS_AT((first) + n);                                        \
          if (left_over > 1) bias4.s1 = BIAS_AT((first) + n + 1);                 \
          if (left_over > 2) bias4.s2 = BIAS_AT((first) + n + 2);                 \
          if (left_over > 3) bias4.s3 = BIAS_AT((first) + n + 3);                 \
        }                                                                         \
        _Pragma("unroll") for (int r = 0; r < RM; ++r) {                          \
          const int m = (first_row) + (r / 4 * TILE_GY + tile_row) * 4 + r % 4;   \
          if (m < (rows)) {                                                       \
            const int at = RESULT_AT(m, (first) + n, pitch);                      \
            const float4 v = tile_sum[r][c] + bias4;                              \
            if (VEC_N) {                                                          \
              STORE4_ALIGNED(DST_T, dst, at, FINISH4_ALIGNED(v, at));             \
            } else {                                                              \
              STORE(DST_T, dst, at, FINISH(v.s0, at));                            \
              if (left_over > 1) STORE(DST_T, dst, at + 1, FINISH(v.s1, at + 1)); \
              if (left_over > 2) STORE(DST_T, dst, at + 2, FINISH(v.s2, at + 2)); \
              if (left_over > 3) STORE(DST_T, dst, at + 3, FINISH(v.s3, at + 3)); \
            }                                                                     \
          }                                                                       \
        }                                                                         \
      }                                                                           \
    }                                                                             \
  }
