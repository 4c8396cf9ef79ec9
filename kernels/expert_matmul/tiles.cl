// tiles.cl - dst[r, n] = act(sum over k of x[X_ROW(r), k] * weights[expert of r, n, k]), tiles in registers
//
// Shapes    x: [.., depth]; weights: [experts, cols, depth], or [experts, depth, cols] with TRANSPOSED;
//           dst: [rows, cols]; see expert_matmul/place.cl
// Launch    one work-item per tile of rows and RN columns (VW columns with TRANSPOSED): global =
//           (tiles of columns rounded up, tiles of rows); it computes 4 rows at a time, or 2, or 1
// Macros    X_T, WEIGHTS_T, DST_T  float|half  element types of x, weights, dst
//           TRANSPOSED  0|1   1: the columns of a matrix are neighbours, otherwise its depth
//           RN          1..8  columns of a tile
//           and those of expert_matmul/place.cl, common/vector.cl (SUM_T float, VW 4 or 16) and common/activation.cl
// Numerics  float sums; VW partial sums, added pairwise at the end, or one with TRANSPOSED
#include "common/activation.cl"
#include "common/vector.cl"
#include "expert_matmul/place.cl"

#if VW == 16
#define ADDED(v) added8((v).lo + (v).hi)
static inline float added8(float8 v) {
  const float4 w = v.lo + v.hi;
  const float2 u = w.lo + w.hi;
  return u.x + u.y;
}
#else
#define ADDED(v) ((v).s0 + (v).s1 + ((v).s2 + (v).s3))
#endif

// The loops must be unrolled, or the sums end up in memory; the number of rows is a constant for that. Of
// N rows the first `count` are stored. rows: of dst; n0: the first column.
#define UNROLLED _Pragma("unroll")
#if TRANSPOSED
#define EXPERT_ROWS(N)                                                                        \
  static inline void expert_rows##N(__global const X_T *x, __global const WEIGHTS_T *weights, \
                                    __global DST_T *dst, const int *rows, int count, int n0,  \
                                    int cols, int depth, int each, int share) {               \
    __global const X_T *from[N];                                                              \
    VEC sums[N];                                                                              \
    UNROLLED for (int i = 0; i < N; ++i) {                                                    \
      from[i] = x + (size_t)X_ROW(rows[i]) * depth;                                           \
      sums[i] = (VEC)(0.0f);                                                                  \
    }                                                                                         \
    for (int k = 0; k < depth; ++k) {                                                         \
      const VEC w = LOAD_VEC(WEIGHTS_T, weights, (size_t)k * cols + n0);                      \
      UNROLLED for (int i = 0; i < N; ++i) sums[i] =                                          \
          MAD_VEC((VEC)(LOAD(X_T, from[i], k)), w, sums[i]);                                  \
    }                                                                                         \
    UNROLLED for (int i = 0; i < N; ++i) {                                                    \
      if (i < count) STORE_VEC(DST_T, dst, (size_t)rows[i] * cols + n0, ACTIVATE(sums[i]));   \
    }                                                                                         \
  }
#else
#define EXPERT_ROWS(N)                                                                        \
  static inline void expert_rows##N(__global const X_T *x, __global const WEIGHTS_T *weights, \
                                    __global DST_T *dst, const int *rows, int count, int n0,  \
                                    int cols, int depth, int each, int share) {               \
    __global const X_T *from[N];                                                              \
    __global const WEIGHTS_T *columns[RN];                                                    \
    VEC sums[N * RN];                                                                         \
    UNROLLED for (int i = 0; i < N; ++i) from[i] = x + (size_t)X_ROW(rows[i]) * depth;        \
    UNROLLED for (int j = 0; j < RN; ++j) columns[j] =                                        \
        weights + (size_t)min(n0 + j, cols - 1) * depth;                                      \
    UNROLLED for (int i = 0; i < N * RN; ++i) sums[i] = (VEC)(0.0f);                          \
    int k = 0;                                                                                \
    for (; k + VW <= depth; k += VW) {                                                        \
      VEC w[RN];                                                                              \
      UNROLLED for (int j = 0; j < RN; ++j) w[j] = LOAD_VEC(WEIGHTS_T, columns[j], k);        \
      UNROLLED for (int i = 0; i < N; ++i) {                                                  \
        const VEC v = LOAD_VEC(X_T, from[i], k);                                              \
        UNROLLED for (int j = 0; j < RN; ++j) sums[i * RN + j] =                              \
            MAD_VEC(v, w[j], sums[i * RN + j]);                                               \
      }                                                                                       \
    }                                                                                         \
    UNROLLED for (int i = 0; i < N; ++i) {                                                    \
      UNROLLED for (int j = 0; j < RN; ++j) {                                                 \
        float sum = ADDED(sums[i * RN + j]);                                                  \
        for (int t = k; t < depth; ++t)                                                       \
          sum = mad(LOAD(X_T, from[i], t), LOAD(WEIGHTS_T, columns[j], t), sum);              \
        if (i < count && n0 + j < cols)                                                       \
          STORE(DST_T, dst, (size_t)rows[i] * cols + n0 + j, ACTIVATE(sum));                  \
      }                                                                                       \
    }                                                                                         \
  }
#endif
EXPERT_ROWS(1)
EXPERT_ROWS(2)
EXPERT_ROWS(4)

__kernel void expert_matmul_tiles(__global const X_T *x, __global const WEIGHTS_T *weights,
                                  PLACE_PARAMS __global DST_T *dst, int cols, int depth,
                                  int experts, int each, int share) {
  const int n0 = (int)get_global_id(0) * (TRANSPOSED ? VW : RN);
  const int tile = get_global_id(1);
  const int count = ROWS_OF(tile);
  if (n0 >= cols || count == 0) return;
  const int expert = EXPERT_OF(tile);
  const int known = expert >= 0 && expert < experts;
  weights += (size_t)(known ? expert : 0) * cols * depth;
  for (int first = 0; first < count; first += 4) {
    const int left = min(count - first, 4);
    int rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = ROW_OF(tile, first + min(i, left - 1));
    if (!known || (TRANSPOSED && n0 + VW > cols)) {
      for (int i = 0; i < left; ++i) {
        for (int n = n0; n < min(n0 + (TRANSPOSED ? VW : RN), cols); ++n) {
          float sum = 0.0f;
          for (int k = 0; known && k < depth; ++k)
            sum = mad(LOAD(X_T, x, (size_t)X_ROW(rows[i]) * depth + k),
                      LOAD(WEIGHTS_T, weights, (size_t)k * cols + n), sum);
          STORE(DST_T, dst, (size_t)rows[i] * cols + n, ACTIVATE(sum));
        }
      }
    } else if (left > 2) {
      expert_rows4(x, weights, dst, rows, left, n0, cols, depth, each, share);
    } else if (left == 2) {
      expert_rows2(x, weights, dst, rows, left, n0, cols, depth, each, share);
    } else {
      expert_rows1(x, weights, dst, rows, left, n0, cols, depth, each, share);
    }
  }
}
