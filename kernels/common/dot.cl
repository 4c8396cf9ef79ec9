// dot.cl - RM * RN dot products of rows of a with rows of b, for CPUs: vectors run along the rows
//
// Shapes    a: [rows, depth]; b: [cols, depth]; both contiguous along depth
// Launch    any; a work-item calls dot_tile for one tile
// Macros    A_T, B_T  float|half, or char|uchar|short  element types of a, b
//           SUM_T     float|int|long  type of sums
//           DOT_ZEROS  0|1   1: subtract a_zero from the elements of a, b_zero from those of b
//           RM   1..8        rows of a in a tile
//           RN   1..8        rows of b in a tile
//           VEC  8|16        elements of a vector
// Numerics  VEC partial sums in SUM_T, added pairwise at the end
#include "common/types.cl"
#include "common/vector_sum.cl"

#define DOT_VEC CLGPU_CAT(SUM_T, VEC)
#define DOT_LOAD(T, p, i) \
  CLGPU_CAT(convert_, DOT_VEC)(CLGPU_CAT(CLGPU_CAT(CLGPU_CAT(load, VEC), _), T)(p, i))
#if DOT_ZEROS
#define DOT_ZERO_PARAM , SUM_T a_zero, SUM_T b_zero
#define DOT_A(v) ((v) - a_zero)
#define DOT_B(v) ((v) - b_zero)
#else
#define DOT_ZERO_PARAM
#define DOT_A(v) (v)
#define DOT_B(v) (v)
#endif

// The loops over a tile must be unrolled, or the accumulators end up in memory; not every compiler
// unrolls them by itself (PoCL: eight times slower).
//
// sums[i * RN + j] = a[m0 + i, :] . b[n0 + j, :]; rows past the end repeat the last one.
void dot_tile(__global const A_T *a, __global const B_T *b, int rows, int cols, int depth, int m0,
              int n0, SUM_T *sums DOT_ZERO_PARAM) {
  __global const A_T *a_row[RM];
  __global const B_T *b_row[RN];
  DOT_VEC acc[RM * RN];
#pragma unroll
  for (int i = 0; i < RM; ++i) a_row[i] = a + (size_t)min(m0 + i, rows - 1) * depth;
#pragma unroll
  for (int j = 0; j < RN; ++j) b_row[j] = b + (size_t)min(n0 + j, cols - 1) * depth;
#pragma unroll
  for (int i = 0; i < RM * RN; ++i) acc[i] = (DOT_VEC)(0);
  int k = 0;
  for (; k + VEC <= depth; k += VEC) {
    DOT_VEC right[RN];
#pragma unroll
    for (int j = 0; j < RN; ++j) right[j] = DOT_B(DOT_LOAD(B_T, b_row[j], k));
#pragma unroll
    for (int i = 0; i < RM; ++i) {
      const DOT_VEC left = DOT_A(DOT_LOAD(A_T, a_row[i], k));
#pragma unroll
      for (int j = 0; j < RN; ++j) acc[i * RN + j] += left * right[j];
    }
  }
#pragma unroll
  for (int i = 0; i < RM; ++i) {
#pragma unroll
    for (int j = 0; j < RN; ++j) {
      SUM_T sum = CLGPU_CAT(sum_of, VEC)(acc[i * RN + j]);
      for (int t = k; t < depth; ++t) {
        const SUM_T left = LOAD(A_T, a_row[i], t), right = LOAD(B_T, b_row[j], t);
        sum += DOT_A(left) * DOT_B(right);
      }
      sums[i * RN + j] = sum;
    }
  }
}
