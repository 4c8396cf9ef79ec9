// wide.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n] + residual[m, n]) for few rows, on
//           GPUs: the time of reading the weights
//
// Shapes    src: [rows, depth]; weights: [cols, depth], with BITS 4 [cols, depth / 8] words as of
//           pack_nibbles.cl; bias: [cols]; dst: [rows, cols]; with BLOCKS block_scales: [cols, depth / block].
//           depth is a multiple of 8, of 16 with BITS 8, of 32 with BITS 4; block a multiple of 32
// Launch    one work-group per COLS columns and ROWS rows: global = (ceil(cols / COLS) * WG,
//           ceil(rows / ROWS), 1), local = (WG, 1, 1)
// Macros    WG            power of two, 16..256  work-items that share sums
//           COLS          1|2|4                  columns of a work-group
//           ROWS          1|2|4                  rows of a work-group
//           BITS          4|8|16|32              of a weight: words, WEIGHTS_T weight8, half or float
//           BLOCKS        0|1                    1: `block` elements of a row share a scale; SCALED is 0
//           SRC_T, WEIGHTS_T, DST_T  float|half|weight8  element types
//           and those of common/epilogue.cl
// Numerics  WG accumulators (float), added pairwise; the bias is added last
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"
#include "fully_connected/blocks.cl"

#if BITS == 4
#define UNITS 4  // vectors of eight elements in a step
#elif BITS == 8
#define UNITS 2
#else
#define UNITS 1
#endif

static inline float add_products(float sum, float8 x, float8 w) {
  sum = fma(x.s0, w.s0, sum);
  sum = fma(x.s1, w.s1, sum);
  sum = fma(x.s2, w.s2, sum);
  sum = fma(x.s3, w.s3, sum);
  sum = fma(x.s4, w.s4, sum);
  sum = fma(x.s5, w.s5, sum);
  sum = fma(x.s6, w.s6, sum);
  return fma(x.s7, w.s7, sum);
}

// The weights of a step lie in 16 bytes, or 32 of floats: one or two accesses.
#if BITS == 4
typedef uint4 weights_t;
#define ROW_LENGTH (depth / 8)
#define READ_WEIGHTS(n, k) (*(__global const uint4 *)(weights + (size_t)(n) * ROW_LENGTH + (k) / 8))
static inline float8 eight_of(uint word) {
  return convert_float8(((int8)(as_int(word)) << (int8)(28, 24, 20, 16, 12, 8, 4, 0)) >> 28);
}
static inline float add_step(float sum, const float8 *x, uint4 w) {
  sum = add_products(sum, x[0], eight_of(w.s0));
  sum = add_products(sum, x[1], eight_of(w.s1));
  sum = add_products(sum, x[2], eight_of(w.s2));
  return add_products(sum, x[3], eight_of(w.s3));
}
#elif BITS == 8
typedef char16 weights_t;
#define READ_WEIGHTS(n, k) (*(__global const char16 *)(weights + (size_t)(n) * depth + (k)))
static inline float add_step(float sum, const float8 *x, char16 w) {
  sum = add_products(sum, x[0], convert_float8(w.lo));
  return add_products(sum, x[1], convert_float8(w.hi));
}
#else
typedef float8 weights_t;
#define READ_WEIGHTS(n, k) LOAD8_ALIGNED(WEIGHTS_T, weights, (size_t)(n) * depth + (k))
static inline float add_step(float sum, const float8 *x, float8 w) {
  return add_products(sum, x[0], w);
}
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void fully_connected_wide(
    __global const SRC_T *src, __global const WEIGHTS_T *weights,
    BLOCK_SCALES_PARAM BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
    int depth BLOCK_PARAM) {
  LOCAL_ARRAY(float, partial, COLS * ROWS * WG);
  const int item = get_local_id(0);
  const int n0 = get_group_id(0) * COLS;
  const int m0 = get_group_id(1) * ROWS;
  float sums[COLS * ROWS];
#pragma unroll
  for (int i = 0; i < COLS * ROWS; ++i) sums[i] = 0.0f;
  for (int k = item * (8 * UNITS); k < depth; k += WG * (8 * UNITS)) {
    weights_t w[COLS];
#pragma unroll
    for (int c = 0; c < COLS; ++c) w[c] = READ_WEIGHTS(min(n0 + c, cols - 1), k);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int at = min(m0 + r, rows - 1) * depth + k;  // past the end: the last row
      float8 x[UNITS];
#pragma unroll
      for (int u = 0; u < UNITS; ++u) x[u] = LOAD8_ALIGNED(SRC_T, src, at + 8 * u);
#pragma unroll
      for (int c = 0; c < COLS; ++c) {
#if BLOCKS
        const float scale = block_scales[min(n0 + c, cols - 1) * (depth / block) + k / block];
        sums[c * ROWS + r] = fma(scale, add_step(0.0f, x, w[c]), sums[c * ROWS + r]);
#else
        sums[c * ROWS + r] = add_step(sums[c * ROWS + r], x, w[c]);
#endif
      }
    }
  }
#pragma unroll
  for (int i = 0; i < COLS * ROWS; ++i) partial[i * WG + item] = sums[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) {
#pragma unroll
      for (int i = 0; i < COLS * ROWS; ++i) partial[i * WG + item] += partial[i * WG + item + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const int m = m0 + item % ROWS, n = n0 + item / ROWS;
  if (item < COLS * ROWS && m < rows && n < cols) {
    const int at = RESULT_AT(m, n, cols);
    STORE(DST_T, dst, at, FINISH_SUM(partial[item * WG], CHANNEL_AT(n), at));
  }
}
