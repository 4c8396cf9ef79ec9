// gemm.cl - dst[b, m, n] = act(sum over k of x(b, m, k) * y(b, k, n)), in tiles
//
// Shapes    x: [..., rows, depth], or [..., depth, rows] if ADJ_X; y: [..., depth, cols], or
//           [..., cols, depth] if ADJ_Y; dst: [b0, b1, b2, b3, rows, cols]
//           batches of x and y: see batch_matmul/batches.cl
// Launch    one work-group per tile: global = (TILE_ITEMS * ceil(cols / TN), ceil(rows / TM),
//           batches), local = (TILE_ITEMS, 1, 1)
// Macros    X_T, Y_T, DST_T  float|half  element types
//           ADJ_X, ADJ_Y     0|1         1: x (y) is transposed
//           VEC_A, VEC_B     0|1         1: the inner axis of x (y) is a multiple of 4
//           TM, TN, TK, RM, RN, SLICES, VEC_N, TILE_ARITH  see common/tile.cl
//           and those of common/epilogue.cl; BIAS and RESIDUAL are 0
// Numerics  see common/tile.cl
#define A_T X_T
#define B_T Y_T
#define A_TRANSPOSED ADJ_X
#define B_TRANSPOSED ADJ_Y
#include "batch_matmul/batches.cl"
#include "common/gemm.cl"

#if B_SUMS
#define A_ZERO_PARAM , int a_zero
#else
#define A_ZERO_PARAM
#endif
#if A_SUMS
#define B_ZERO_PARAM , int b_zero
#else
#define B_ZERO_PARAM
#endif

__kernel __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) void batch_matmul_gemm(
    __global const X_T *x, __global const Y_T *y, BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows,
    int cols, int depth, BATCH_PARAMETERS A_ZERO_PARAM B_ZERO_PARAM) {
  TILE_BEGIN
  const int batch = get_group_id(2);
  __global const A_T *a_matrix = x + BATCH_OFFSET_X(batch) * rows * depth;
  __global const B_T *b_matrix = y + BATCH_OFFSET_Y(batch) * depth * cols;
  dst += batch * rows * cols;
  const int first_row = (int)get_group_id(1) * TM, first_col = (int)get_group_id(0) * TN;
  TILE_PRODUCT(0, TILE_DEPTH(depth))
  TILE_STORE(first_row, rows, first_col, cols, cols, 0)
}
