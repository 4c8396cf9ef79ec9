// gemm.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n]), in tiles
//
// Shapes    src: [rows, depth]; weights: [cols, depth]; bias: [cols]; residual, dst: [rows, cols]
// Launch    one work-group per tile: global = (TILE_ITEMS * ceil(cols / TN), ceil(rows / TM), 1),
//           local = (TILE_ITEMS, 1, 1)
// Macros    SRC_T, WEIGHTS_T, DST_T  float|half  element types
//           VEC_A, VEC_B             0|1         1: depth is a multiple of 4
//           TM, TN, TK, RM, RN, SLICES, VEC_N, TILE_ARITH  see common/tile.cl
//           and those of common/epilogue.cl
// Numerics  see common/tile.cl; bias and residual are added last
#define A_T SRC_T
#define B_T WEIGHTS_T
#define A_TRANSPOSED 0
#define B_TRANSPOSED 1
#include "common/gemm.cl"

// Weights with a zero point.
#if A_SUMS
#define B_ZERO_PARAM , int b_zero
#else
#define B_ZERO_PARAM
#endif

__kernel __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) void fully_connected_gemm(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols, int depth B_ZERO_PARAM) {
  TILE_BEGIN
  const int first_row = (int)get_group_id(1) * TM, first_col = (int)get_group_id(0) * TN;
  __global const A_T *a_matrix = src;
  __global const B_T *b_matrix = weights;
  TILE_PRODUCT(0, TILE_DEPTH(depth))
  TILE_STORE(first_row, rows, first_col, cols, cols, 0)
}
