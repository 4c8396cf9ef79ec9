// l2_normalization.cl - dst[r, c] = act(src[r, c] / length[r] * weight[c])
//
//   length[r] = sqrt(squares[r] / divisor + epsilon) with EPSILON, else max(sqrt(squares[r]), 1e-6)
//   squares[r] = sum over j of src[r, j]^2
//
// Shapes    src, dst: [rows, cols], which may be one buffer; weight: [cols]
// Launch    global = (ceil(rows / ROWS) * ROWS * WG, 1, 1), local = (ROWS * WG, 1, 1): a work-group
//           takes ROWS rows, WG work-items share each
// Macros    ROWS     power of two, 1..64   rows of a work-group
//           WG       power of two, 1..256  work-items of a row
//           EPSILON  0|1                   1: there are divisor and epsilon
//           WEIGHT   0|1                   1: there is a parameter weight; 0: the weight is 1
//           SRC_T    float|half            element type of src
//           WEIGHT_T if WEIGHT == 1  float|half  element type of weight
//           DST_T    float|half            element type of dst
// Numerics  WG sums in float, added pairwise; ACT and ACT_ALPHA: see common/activation.cl
#include "common/activation.cl"
#include "common/local.cl"
#include "common/types.cl"

#if WEIGHT
#define WEIGHT_PARAM __global const WEIGHT_T *weight,
#define WEIGHTED(x, c) ((x) * LOAD(WEIGHT_T, weight, c))
#else
#define WEIGHT_PARAM
#define WEIGHTED(x, c) (x)
#endif
#define NORMALIZED(c) ACTIVATE(WEIGHTED(LOAD(SRC_T, src, c) / norm, c))
#if EPSILON
#define LENGTH_PARAMS , float divisor, float epsilon
#else
#define LENGTH_PARAMS
#endif

__kernel __attribute__((reqd_work_group_size(ROWS * WG, 1, 1))) void l2_normalization_rows(
    __global const SRC_T *src, WEIGHT_PARAM __global DST_T *dst, int rows, int cols LENGTH_PARAMS) {
  const int item = get_local_id(0) % WG;
  const int row = get_group_id(0) * ROWS + get_local_id(0) / WG;
  const int end = row < rows ? cols : 0;  // rows past the end have no elements
  src += (size_t)row * cols;
  dst += (size_t)row * cols;
  float sum = 0.0f;
#pragma unroll 4
  for (int c = item; c < end; c += WG) {
    const float x = LOAD(SRC_T, src, c);
    sum += x * x;
  }
#if WG > 1
  LOCAL_ARRAY(float, sums, ROWS *WG);
  const int mine = get_local_id(0);
  sums[mine] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) sums[mine] += sums[mine + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = sums[mine - item];
#endif
#if EPSILON
  const float norm = sqrt(sum / divisor + epsilon);
#else
  const float length = sqrt(sum);
  const float norm = AT_LEAST(length, 1e-6f);
#endif
  // Four reads take the time of one. The compiler cannot do that where it has to expect that src is dst.
  int c = item;
  for (; c + 3 * WG < end; c += 4 * WG) {
    float x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = NORMALIZED(c + i * WG);
#pragma unroll
    for (int i = 0; i < 4; ++i) STORE(DST_T, dst, c + i * WG, x[i]);
  }
  for (; c < end; c += WG) STORE(DST_T, dst, c, NORMALIZED(c));
}
