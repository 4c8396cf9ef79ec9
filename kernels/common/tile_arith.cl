// tile_arith.cl - the arithmetic of common/tile.cl: floats, halves, or words of int8
//
// QUAD_T                the result of loads: four elements, each a TILE_ELEMENT_T
// TILE_T, TILE_VEC      an element and a quad in local memory; TILE_CONVERT(v): from QUAD_T
// TILE_DEPTH(n)         elements along k of n numbers
// TILE_MAD(x, y, s)     s + x * y; x an element, y a quad, s a quad of sums
// TILE_SUBTRACT_ZEROS   subtracts the share of the zero points of a and b from the sums
//
// Macros    TILE_ARITH  0..2  0 float, 1 half, 2 int8; see common/tile.cl
//           A_SUMS, B_SUMS if TILE_ARITH == 2  0|1  see common/tile.cl
//           DOT8 if TILE_ARITH == 2            0..3, see common/dot8.cl

#if TILE_ARITH == 2
#include "common/dot8.cl"
#define QUAD_T int4
#define TILE_ELEMENT_T int
#define TILE_T int
#define TILE_VEC int4
#define TILE_CONVERT(v) (v)
#define TILE_DEPTH(n) (((n) + 3) / 4)
#define TILE_MAD(x, y, s) DOT8_ADD4(x, y, s)
#else
#define A_SUMS 0
#define B_SUMS 0
#define QUAD_T float4
#define TILE_ELEMENT_T float
#define TILE_DEPTH(n) (n)
#define TILE_MAD(x, y, s) mad((TILE_VEC)(x), y, s)
#if TILE_ARITH == 1
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define TILE_T half
#define TILE_VEC half4
#define TILE_CONVERT(v) convert_half4(v)
#else
#define TILE_T float
#define TILE_VEC float4
#define TILE_CONVERT(v) (v)
#endif
#endif

#define TILE_ONES 0x01010101
#if A_SUMS
#define TILE_SUBTRACT_A(q, c)                            \
  tile_sum[(q) * 4][c] -= b_zero * tile_a_sum[q].s0;     \
  tile_sum[(q) * 4 + 1][c] -= b_zero * tile_a_sum[q].s1; \
  tile_sum[(q) * 4 + 2][c] -= b_zero * tile_a_sum[q].s2; \
  tile_sum[(q) * 4 + 3][c] -= b_zero * tile_a_sum[q].s3;
#else
#define TILE_SUBTRACT_A(q, c)
#endif
#if B_SUMS
#define TILE_SUBTRACT_B(q, c)                         \
  tile_sum[(q) * 4][c] -= a_zero * tile_b_sum[c];     \
  tile_sum[(q) * 4 + 1][c] -= a_zero * tile_b_sum[c]; \
  tile_sum[(q) * 4 + 2][c] -= a_zero * tile_b_sum[c]; \
  tile_sum[(q) * 4 + 3][c] -= a_zero * tile_b_sum[c];
#else
#define TILE_SUBTRACT_B(q, c)
#endif
#define TILE_SUBTRACT_ZEROS                               \
  _Pragma("unroll") for (int q = 0; q < TILE_QM; ++q) {   \
    _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) { \
      TILE_SUBTRACT_A(q, c) TILE_SUBTRACT_B(q, c)         \
    }                                                     \
  }
