// layer_norm.cl - dst[r, c] = act((src[r, c] - mean[r]) * factor[r] * scale[c] + bias[c] + residual[r, c])
//
//   mean[r]   = sum over j of src[r, j] / cols
//   factor[r] = 1 / sqrt(sum over j of (src[r, j] - mean[r])^2 / cols + epsilon)
//
// Shapes    src, dst: [rows, cols], which may be one buffer; dst may be a slice; scale, bias: [cols]; residual: as dst
// Launch    global = (ceil(rows / ROWS) * ROWS * WG, 1, 1), local = (ROWS * WG, 1, 1): a work-group
//           takes ROWS rows, WG work-items share each
// Macros    ROWS   power of two, 1..256  rows of a work-group
//           WG     power of two, 1..256  work-items of a row
//           VW     1|4|16                columns that a work-item reads at once; cols is a multiple of it
//           HELD   0..8                  vectors of a row that a work-item keeps, at least as many as it has; 0: it
//                                        reads them three times
//           SCALE  0|1                   1: there is a parameter scale; 0: the scale is 1
//           SRC_T  float|half            element type of src
//           SCALE_T if SCALE == 1  float|half  element type of scale
//           DST_T  float|half            element type of dst
//           and those of common/vector_epilogue.cl
// Numerics  float: of all elements the first of their row is subtracted, then their mean, then the squares are added;
//           WG * VW sums, added pairwise
#include "common/local.cl"
#include "common/sum_vec.cl"
#include "common/vector_epilogue.cl"

#if SLICED
#define WRITE_VEC(T, p, i, v) STORE_VEC(T, p, i, v)
#else
#define WRITE_VEC(T, p, i, v) STORE_VEC_ALIGNED(T, p, i, v)
#endif

#if SCALE
#define SCALE_PARAM __global const SCALE_T *scale,
#define SCALED_BY(v, c) ((v) * LOAD_VEC_ALIGNED(SCALE_T, scale, c))
#else
#define SCALE_PARAM
#define SCALED_BY(v, c) (v)
#endif

#if HELD
#define STEPS HELD
#define VALUES(i, c) held[i]
#else
#define STEPS ((vectors - item + WG - 1) / WG)
#define VALUES(i, c) (LOAD_VEC_ALIGNED(SRC_T, src, c) - first)
#endif

// The sum over the work-items of a row, for all of them.
#if WG > 1
#define SHARE_SUM(sum)                                  \
  sums[mine] = sum;                                     \
  barrier(CLK_LOCAL_MEM_FENCE);                         \
  for (int reach = WG / 2; reach > 0; reach /= 2) {     \
    if (item < reach) sums[mine] += sums[mine + reach]; \
    barrier(CLK_LOCAL_MEM_FENCE);                       \
  }                                                     \
  sum = sums[mine - item];                              \
  barrier(CLK_LOCAL_MEM_FENCE);
#else
#define SHARE_SUM(sum)
#endif

__kernel __attribute__((reqd_work_group_size(ROWS * WG, 1, 1))) void layer_norm_rows(
    __global const SRC_T *src, SCALE_PARAM BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int rows,
    int cols, float epsilon) {
  const int mine = get_local_id(0);
  const int item = mine % WG;
  const int row = get_group_id(0) * ROWS + mine / WG;
  const int vectors = row < rows ? cols / VW : 0;  // rows past the end have no elements
  src += (size_t)row * cols;
#if WG > 1
  LOCAL_ARRAY(float, sums, ROWS *WG);
#endif
  const float first = vectors > 0 ? LOAD(SRC_T, src, 0) : 0.0f;
#if HELD
  VEC held[HELD];
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    const int v = item + i * WG;
    held[i] = (VEC)(0.0f);
    if (v < vectors) held[i] = LOAD_VEC_ALIGNED(SRC_T, src, v * VW) - first;
  }
#endif
  VEC parts = (VEC)(0.0f);
#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    if (item + i * WG < vectors) parts += VALUES(i, (item + i * WG) * VW);
  }
  float mean = SUM_OF_VEC(parts);
  SHARE_SUM(mean)
  mean /= cols;
  parts = (VEC)(0.0f);
#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    if (item + i * WG < vectors) {
      const VEC difference = VALUES(i, (item + i * WG) * VW) - mean;
      parts += difference * difference;
    }
  }
  float variance = SUM_OF_VEC(parts);
  SHARE_SUM(variance)
  const float factor = 1.0f / sqrt(variance / cols + epsilon);
#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    const int v = item + i * WG;
    if (v >= vectors) continue;
    const int c = v * VW;
    const int at = RESULT_AT(row, c, cols);
    const VEC value = SCALED_BY((VALUES(i, c) - mean) * factor, c);
    WRITE_VEC(DST_T, dst, at, FINISH_SUM_VEC(value, CHANNEL_VEC_AT(c), at));
  }
}
