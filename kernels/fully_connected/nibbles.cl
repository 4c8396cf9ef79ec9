// nibbles.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n] + residual[m, n]), for
//              few rows, with weights of 4 bits
//
// Shapes    src: [rows, depth]; weights: [cols, ceil(depth / 8)] words, see pack_nibbles.cl; bias: [cols];
//           dst: [rows, cols]; with BLOCKS block_scales: [cols, depth / block]
// Launch    one work-group per column and ROWS rows: global = (cols * WG, ceil(rows / ROWS), 1),
//           local = (WG, 1, 1); a row of weights is read once for ROWS rows of src
// Macros    WG            power of two, 1..256  work-items that share a sum
//           ROWS          1|2|4                 rows of src per work-group
//           BLOCKS        0|1                   1: `block` elements of a row share a scale; SCALED is 0
//           SRC_T, DST_T  float|half, or char with QUANTIZED  element types
//           and those of common/epilogue.cl
// Numerics  8 * WG accumulators (SUM_T), added pairwise; the bias is added last
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"
#include "fully_connected/blocks.cl"

#define SUM_OF(v) \
  ((((v).s0 + (v).s1) + ((v).s2 + (v).s3)) + (((v).s4 + (v).s5) + ((v).s6 + (v).s7)))

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
  SUM8_T sums##r = 0;                                                                  \
  SUM_T rest##r = 0;
#define ADD_WORD(r) sums##r += LOAD8(SRC_T, src, start##r + k) * w8;
#define ADD_ELEMENT(r) rest##r += LOAD(SRC_T, src, start##r + k + i) * w;
#define STAGE_ROW(r) partial[r * WG + item] = SUM_OF(sums##r) + rest##r;

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void fully_connected_nibbles(
    __global const SRC_T *src, __global const uint *weights,
    BLOCK_SCALES_PARAM BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
    int depth BLOCK_PARAM) {
  LOCAL_ARRAY(SUM_T, partial, WG * ROWS);
  const int item = get_local_id(0);
  const int n = get_group_id(0);
  const int m0 = get_group_id(1) * ROWS;
  const int words = (depth + 7) / 8;
  weights += (size_t)n * words;
  EACH_ROW(BEGIN_ROW)
  for (int word = item; word < words; word += WG) {
    const int bits = as_int(weights[word]);
    const int k = word * 8;
    if (k + 8 <= depth) {
      const int8 high = (int8)(bits) << (int8)(28, 24, 20, 16, 12, 8, 4, 0);
#if BLOCKS
      const float8 w8 = convert_float8(high >> 28) * block_scales[n * (depth / block) + k / block];
#else
      const SUM8_T w8 = CLGPU_CAT(convert_, SUM8_T)(high >> 28);
#endif
      EACH_ROW(ADD_WORD)
    } else {  // not with blocks
      for (int i = 0; i < depth - k; ++i) {
        const SUM_T w = (bits << (28 - 4 * i)) >> 28;
        EACH_ROW(ADD_ELEMENT)
      }
    }
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
  for (int r = item; r < ROWS; r += WG) {
    if (m0 + r >= rows) break;
    const int at = RESULT_AT(m0 + r, n, cols);
    STORE(DST_T, dst, at, FINISH_SUM(partial[r * WG], CHANNEL_AT(n), at));
  }
}
