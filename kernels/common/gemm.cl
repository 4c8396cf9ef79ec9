// gemm.cl - loading of two matrices from global memory, for common/tile.cl
//
//   __global const A_T *a_matrix = ...; __global const B_T *b_matrix = ...;
//   const int first_row = ..., first_col = ...;  // of the tile; rows, cols and depth are parameters
//   TILE_PRODUCT(0, TILE_DEPTH(depth))
//
// For int8 (TILE_ARITH 2): SUM_T is int, A_T and B_T are char or uchar; 128 is subtracted from uchar, and
// from its zero points. Parameters int a_zero, int b_zero are needed only with B_SUMS and A_SUMS (tile.cl);
// if the channel table holds the row sums (`start`, for constant weights), those are 0.
//
// Macros    A_T, B_T      float|half|char|uchar  element types
//           A_TRANSPOSED  0|1         1: a is stored as [depth, rows], else as [rows, depth]
//           B_TRANSPOSED  0|1         1: b is stored as [cols, depth], else as [depth, cols]
//           VEC_A, VEC_B  0..2        1: inner axis and start of the matrix are multiples of 4; 2: of 16,
//                                     for integers whose inner axis is the depth
#include "common/tile.cl"

#if TILE_ARITH == 2
#include "common/gemm_words.cl"
#else
// Elements i .. i + 3 of a line, zero from `end` on; with VEC, `end` is a multiple of 4.
#define GEMM_QUAD(T, VEC, v, p, at, i, end)           \
  v = (float4)(0.0f);                                 \
  if (VEC) {                                          \
    if ((i) < (end)) v = LOAD4_ALIGNED(T, p, at);     \
  } else {                                            \
    if ((i) < (end)) v.s0 = LOAD(T, p, at);           \
    if ((i) + 1 < (end)) v.s1 = LOAD(T, p, (at) + 1); \
    if ((i) + 2 < (end)) v.s2 = LOAD(T, p, (at) + 2); \
    if ((i) + 3 < (end)) v.s3 = LOAD(T, p, (at) + 3); \
  }
// Quads along k, if k is the inner axis: lines past the last one repeat it.
#define GEMM_LOAD_K4(T, VEC, v, p, width, first, count, step)                                     \
  _Pragma("unroll") for (int q = 0; q < (TILE_QUADS(width) + TILE_ITEMS - 1) / TILE_ITEMS; ++q) { \
    if (TILE_HAS(q, width)) {                                                                     \
      const int k_ = (step) + TILE_K4_K(q);                                                       \
      const int at_ = min((first) + TILE_K4_ROW(q), (count) - 1) * depth + k_;                    \
      GEMM_QUAD(T, VEC, v[q], p, at_, k_, depth)                                                  \
    }                                                                                             \
  }
// Quads of four neighbouring rows or columns, if those are the inner axis.
#define GEMM_LOAD_N4(T, VEC, v, p, width, first, count, step)                                     \
  _Pragma("unroll") for (int q = 0; q < (TILE_QUADS(width) + TILE_ITEMS - 1) / TILE_ITEMS; ++q) { \
    if (TILE_HAS(q, width)) {                                                                     \
      const int k_ = (step) + TILE_N4_K(q, width), n_ = (first) + TILE_N4_AT(q, width);           \
      GEMM_QUAD(T, VEC, v[q], p, k_ * (count) + n_, n_, k_ < depth ? (count) : 0)                 \
    }                                                                                             \
  }
#endif

#if A_TRANSPOSED
#define TILE_LOAD_A(v, step) GEMM_LOAD_N4(A_T, VEC_A, v, a_matrix, TM, first_row, rows, step)
#define TILE_PUT_A(stage, v) TILE_PUT_N4(stage, TM, v, TILE_AQ)
#else
#define TILE_LOAD_A(v, step) GEMM_LOAD_K4(A_T, VEC_A, v, a_matrix, TM, first_row, rows, step)
#define TILE_PUT_A(stage, v) TILE_PUT_K4(stage, TM, v, TILE_AQ)
#endif
#if B_TRANSPOSED
#define TILE_LOAD_B(v, step) GEMM_LOAD_K4(B_T, VEC_B, v, b_matrix, TN, first_col, cols, step)
#define TILE_PUT_B(stage, v) TILE_PUT_K4(stage, TN, v, TILE_BQ)
#else
#define TILE_LOAD_B(v, step) GEMM_LOAD_N4(B_T, VEC_B, v, b_matrix, TN, first_col, cols, step)
#define TILE_PUT_B(stage, v) TILE_PUT_N4(stage, TN, v, TILE_BQ)
#endif
