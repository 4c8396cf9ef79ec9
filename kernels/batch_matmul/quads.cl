// quads.cl - dst[b, m, n] = act(sum over k of x(b, m, k) * y(b, k, n)), for mobile GPUs: a work-item keeps
//            4 rows x 4 columns in named vectors, because their compilers put arrays into slow memory
//
// Shapes    x: [..., rows, depth], or [..., depth, rows] if ADJ_X; y: [..., depth, cols], or
//           [..., cols, depth] if ADJ_Y; dst: [b0, b1, b2, b3, rows, cols]
//           batches of x and y: see batch_matmul/batches.cl
// Launch    axis 0: blocks of 4 columns; axis 1: of 4 rows; axis 2: batches; axes 0 and 1 rounded up.
//           any local size that is 1 along axis 2
// Macros    X_T, Y_T, DST_T  float|half, or char and DST_T char|int with QUANTIZED  element types
//           ADJ_X  0|1         1: x is transposed
//           ADJ_Y  0|1         1: y is transposed
//           ZEROS  0|1         1: subtract the zero points, the last arguments, from x and y
//           and those of common/epilogue.cl; BIAS and RESIDUAL are 0
// Numerics  one accumulator each, SUM_T, in the order of k; floats: four products at a time if only y is
//           transposed; with SUM_T half, see common/block_sums.cl
#include "batch_matmul/batches.cl"
#include "batch_matmul/zeros.cl"
#include "common/block_sums.cl"
#include "common/epilogue.cl"
#include "common/types.cl"

#define EACH(DO) DO(0) DO(1) DO(2) DO(3)
#if QUANTIZED
#define ADD_PRODUCT(a, b, sum) ((a) * (b) + (sum))
#define DOT(a, b) ((a).s0 * (b).s0 + (a).s1 * (b).s1 + (a).s2 * (b).s2 + (a).s3 * (b).s3)
#else
#define ADD_PRODUCT(a, b, sum) mad(a, b, sum)
#if HALF_SUMS
#define DOT(a, b) mad((a).s3, (b).s3, mad((a).s2, (b).s2, mad((a).s1, (b).s1, (a).s0 *(b).s0)))
#else
#define DOT(a, b) dot(a, b)
#endif
#endif

// Positions of the work-item's rows and columns; those past the end repeat the last one.
#define PLACE(i)                           \
  const int row##i = min(m + i, rows - 1); \
  const int col##i = min(n + i, cols - 1); \
  DECLARE_TOTAL(TOTAL4_T, SUM4_T, sum##i)
#define FLUSH_SUM(i) FLUSH_TOTAL(convert_float4, sum##i)

// Four elements of a row of a matrix; one load if all four exist.
#define LOAD_SIDE(T, p, at, whole, i0, i1, i2, i3)                                    \
  ((whole) ? LOAD_FACTOR4(T, p, (at) + (i0))                                          \
           : (SUM4_T)(LOAD_FACTOR(T, p, (at) + (i0)), LOAD_FACTOR(T, p, (at) + (i1)), \
                      LOAD_FACTOR(T, p, (at) + (i2)), LOAD_FACTOR(T, p, (at) + (i3))))
#if ADJ_X
#define ROWS_AT(k) LOAD_SIDE(X_T, x, (k) * rows, all_rows, row0, row1, row2, row3)
#else
#define X_AT(r, k) LOAD_FACTOR(X_T, x, row##r *depth + (k))
#define ROWS_AT(k) (SUM4_T)(X_AT(0, k), X_AT(1, k), X_AT(2, k), X_AT(3, k))
#endif
#if ADJ_Y
#define Y_AT(c, k) LOAD_FACTOR(Y_T, y, col##c *depth + (k))
#define COLUMNS_AT(k) (SUM4_T)(Y_AT(0, k), Y_AT(1, k), Y_AT(2, k), Y_AT(3, k))
#else
#define COLUMNS_AT(k) LOAD_SIDE(Y_T, y, (k) * cols, all_cols, col0, col1, col2, col3)
#endif

// All products of a step of depth.
#define ADD_OUTER(r, lane) PARTIAL(sum##r) = ADD_PRODUCT((SUM4_T)(a.lane), b, PARTIAL(sum##r));
#define ADD_STEP(k)                          \
  {                                          \
    const SUM4_T a = X_VALUE(ROWS_AT(k));    \
    const SUM4_T b = Y_VALUE(COLUMNS_AT(k)); \
    ADD_OUTER(0, s0)                         \
    ADD_OUTER(1, s1)                         \
    ADD_OUTER(2, s2)                         \
    ADD_OUTER(3, s3)                         \
  }
// Four steps: rows of x by rows of y, and by columns of y.
#define LOAD_ROW(r) const SUM4_T a##r = X_VALUE(LOAD_FACTOR4(X_T, x, row##r * depth + k));
#define LOAD_COLUMN(c) const SUM4_T b##c = Y_VALUE(LOAD_FACTOR4(Y_T, y, col##c * depth + k));
#define ADD_DOTS(r) \
  PARTIAL(sum##r) += (SUM4_T)(DOT(a##r, b0), DOT(a##r, b1), DOT(a##r, b2), DOT(a##r, b3));
#define ADD_LANE(r, lane) PARTIAL(sum##r) = ADD_PRODUCT((SUM4_T)(a##r.lane), b, PARTIAL(sum##r));
#define ADD_LANES(j, lane)                       \
  {                                              \
    const SUM4_T b = Y_VALUE(COLUMNS_AT(k + j)); \
    ADD_LANE(0, lane)                            \
    ADD_LANE(1, lane)                            \
    ADD_LANE(2, lane)                            \
    ADD_LANE(3, lane)                            \
  }

#define STORE_LANE(v, j) \
  if (n + j < cols) STORE(DST_T, dst, at + j, FINISH_SUM(v, CHANNEL_AT(n + j), at + j));
#define STORE_ROW(r)                                                   \
  if (m + r < rows) {                                                  \
    const int at = (m + r) * cols + n;                                 \
    if (all_cols) {                                                    \
      STORE4(DST_T, dst, at, FINISH_SUM4(sum##r, CHANNEL4_AT(n), at)); \
    } else {                                                           \
      STORE_LANE(sum##r.s0, 0)                                         \
      STORE_LANE(sum##r.s1, 1)                                         \
      STORE_LANE(sum##r.s2, 2)                                         \
    }                                                                  \
  }

__kernel void batch_matmul_quads(__global const X_T *x, __global const Y_T *y,
                                 BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows, int cols,
                                 int depth, BATCH_PARAMETERS ZERO_PARAMETERS) {
  const int n = get_global_id(0) * 4, m = get_global_id(1) * 4, batch = get_global_id(2);
  if (n >= cols || m >= rows) return;
  x += BATCH_OFFSET_X(batch) * rows * depth;
  y += BATCH_OFFSET_Y(batch) * depth * cols;
  dst += batch * rows * cols;
  const bool all_rows = m + 4 <= rows, all_cols = n + 4 <= cols;

  EACH(PLACE)
  COUNT_PRODUCTS
  int k = 0;
#if !ADJ_X
  for (; k + 4 <= depth; k += 4) {
    EACH(LOAD_ROW)
#if ADJ_Y
    EACH(LOAD_COLUMN)
    EACH(ADD_DOTS)
#else
    ADD_LANES(0, s0)
    ADD_LANES(1, s1)
    ADD_LANES(2, s2)
    ADD_LANES(3, s3)
#endif
    ADDED(4, EACH(FLUSH_SUM))
  }
  EACH(FLUSH_SUM)
#endif
  for (; k < depth; ++k) {
    ADD_STEP(k)
    ADDED(1, EACH(FLUSH_SUM))
  }
  EACH(FLUSH_SUM)
  EACH(STORE_ROW)
}
