// gemv.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n] + residual[m, n]) for few rows, on GPUs
//
// Shapes    src: [rows, depth]; weights: [cols, depth]; bias: [cols]; dst: [rows, cols]
// Launch    one work-group per column and ROWS rows: global = (cols * WG, ceil(rows / ROWS), 1),
//           local = (WG, 1, 1); a row of weights is read once for ROWS rows of src
// Macros    WG         power of two, 1..256  work-items that share a sum
//           ROWS       1|2|4                 rows of src per work-group, at most WG
//           SRC_T, WEIGHTS_T, DST_T  float|half, or char|uchar|short with QUANTIZED  element types
//           WEIGHTS_ZERO  0|1                1: weights have a zero point, the last argument
//           and those of common/epilogue.cl
// Numerics  WG accumulators (SUM_T), added pairwise; the bias is added last
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"
#include "fully_connected/zero.cl"

// Each row has its own variables: some compilers keep private arrays in memory.
#if ROWS == 1
#define EACH_ROW(M) M(0)
#elif ROWS == 2
#define EACH_ROW(M) M(0) M(1)
#else
#define EACH_ROW(M) M(0) M(1) M(2) M(3)
#endif
#define BEGIN_ROW(r)                                                                   \
  const int start##r = min(m0 + r, rows - 1) * depth; /* past the end: the last row */ \
  SUM_T sum##r = 0;
#define ADD_TO_ROW(r) sum##r += w * LOAD(SRC_T, src, start##r + k);
#define STAGE_ROW(r) partial[r * WG + item] = sum##r;

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void fully_connected_gemv(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols, int depth WEIGHTS_ZERO_PARAM) {
  LOCAL_ARRAY(SUM_T, partial, WG * ROWS);
  const int item = get_local_id(0);
  const int n = get_group_id(0);
  const int m0 = get_group_id(1) * ROWS;
  weights += (size_t)n * depth;
  EACH_ROW(BEGIN_ROW)
  for (int k = item; k < depth; k += WG) {
    const SUM_T w = WEIGHT(LOAD(WEIGHTS_T, weights, k));
    EACH_ROW(ADD_TO_ROW)
  }
  EACH_ROW(STAGE_ROW)
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) partial[r * WG + item] += partial[r * WG + item + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item < ROWS && m0 + item < rows) {
    const int at = RESULT_AT(m0 + item, n, cols);
    STORE(DST_T, dst, at, FINISH_SUM(partial[item * WG], CHANNEL_AT(n), at));
  }
}
