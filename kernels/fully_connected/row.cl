// row.cl - dst[m, n] = act(sum over k of src[m, k] * weights[n, k] + bias[n] + residual[m, n]) for few rows, on CPUs
//
// Shapes    src: [rows, depth]; weights: [cols, depth], with PLANES as of pack_planes.cl; bias: [cols];
//           dst: [rows, cols]; with BLOCKS block_scales: [cols, depth / block]. With PLANES, depth and block are
//           multiples of 32
// Launch    one work-item per column and row: global = (cols rounded up, rows, 1), any local
// Macros    PLANES        0|1              1: weights have 4 bits
//           BLOCKS        0|1              1, with PLANES: `block` elements of a row share a scale; SCALED is 0
//           SRC_T, DST_T  float|half       element types
//           WEIGHTS_T if PLANES == 0  float|half|weight8  element type of weights
//           and those of common/epilogue.cl
// Numerics  4 vectors of 16 partial sums (float), added pairwise; then what vectors leave, and the bias
#include "common/epilogue.cl"
#include "common/types.cl"
#include "common/vector_sum.cl"
#include "fully_connected/blocks.cl"

// A sum depends on the one before it, so the loop adds to four vectors in turns: STEP elements.
#if PLANES
#define WEIGHTS_PARAM __global const char *weights,
#define ROW_LENGTH (depth / 2)
#if BLOCKS
#define WIDENED(v, k) (block_scales[(k) / block] * convert_float16(v))
#else
#define WIDENED(v, k) convert_float16(v)
#endif
#define ADD_PLANES(k, a, b)                                        \
  {                                                                \
    const int16 planes = load16_char(weights, (k) / 2);            \
    a += LOAD16(SRC_T, src, k) * WIDENED((planes << 28) >> 28, k); \
    b += LOAD16(SRC_T, src, (k) + 16) * WIDENED(planes >> 4, k);   \
  }
#define STEP 64
#define ADD_STEP(k) ADD_PLANES(k, first, second) ADD_PLANES((k) + 32, third, fourth)
#define REST 32
#define ADD_REST(k) ADD_PLANES(k, first, second)
#else
#define WEIGHTS_PARAM __global const WEIGHTS_T *weights,
#define ROW_LENGTH depth
#define ADD_TO(sum, k) sum += LOAD16(SRC_T, src, k) * LOAD16(WEIGHTS_T, weights, k);
#define STEP 64
#define ADD_STEP(k) \
  ADD_TO(first, k) ADD_TO(second, (k) + 16) ADD_TO(third, (k) + 32) ADD_TO(fourth, (k) + 48)
#define REST 16
#define ADD_REST(k) ADD_TO(first, k)
#endif

__kernel __attribute__((vec_type_hint(float16))) void fully_connected_row(
    __global const SRC_T *src,
    WEIGHTS_PARAM BLOCK_SCALES_PARAM BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
    int depth BLOCK_PARAM) {
  const int n = get_global_id(0), m = get_global_id(1);
  if (n >= cols) return;
  src += (size_t)m * depth;
  weights += (size_t)n * ROW_LENGTH;
#if BLOCKS
  block_scales += (size_t)n * (depth / block);
#endif
  float16 first = 0.0f, second = 0.0f, third = 0.0f, fourth = 0.0f;
  int k = 0;
  for (; k + STEP <= depth; k += STEP) {
    ADD_STEP(k)
  }
  for (; k + REST <= depth; k += REST) {
    ADD_REST(k)
  }
  float sum = sum_of16((first + second) + (third + fourth));
#if !PLANES
  for (; k < depth; ++k) sum += LOAD(SRC_T, src, k) * LOAD(WEIGHTS_T, weights, k);
#endif
  const int at = RESULT_AT(m, n, cols);
  STORE(DST_T, dst, at, FINISH_SUM(sum, CHANNEL_AT(n), at));
}
