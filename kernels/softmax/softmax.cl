// softmax.cl - over the last axis: dst[r, c] = exp(beta * (src[r, c] - max_r)) / sum_r, or its logarithm
//
// Shapes    src, dst: [rows, cols], row-major, contiguous
// Launch    one work-group per row: global = (rows * WG, 1, 1), local = (WG, 1, 1)
// Macros    WG      power of two, 1..256    work-items per row
//           SRC_T   float|half              element type of src
//           DST_T   float|half              element type of dst
//           LOG     0|1                     1 stores beta * (x - max) - log(sum)
// Numerics  max, exp and sum in float, whatever the storage is
#include "common/types.cl"
#ifndef WG
#error "WG is required (power of two)"
#endif
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif
#ifndef LOG
#error "LOG is required (0 or 1)"
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void softmax_rows(
    __global const SRC_T *src, __global DST_T *dst, int cols, float beta) {
  __local float shared[WG];
  const int item = get_local_id(0);
  src += (size_t)get_group_id(0) * cols;
  dst += (size_t)get_group_id(0) * cols;

  float largest = -INFINITY;
  for (int c = item; c < cols; c += WG) largest = fmax(largest, LOAD(SRC_T, src, c));
  shared[item] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) shared[item] = fmax(shared[item], shared[item + step]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  largest = shared[0];
  barrier(CLK_LOCAL_MEM_FENCE);

  float sum = 0.0f;
  for (int c = item; c < cols; c += WG) sum += exp(beta * (LOAD(SRC_T, src, c) - largest));
  shared[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) shared[item] += shared[item + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = shared[0];

  for (int c = item; c < cols; c += WG) {
    const float x = beta * (LOAD(SRC_T, src, c) - largest);
#if LOG
    STORE(DST_T, dst, c, x - log(sum));
#else
    STORE(DST_T, dst, c, exp(x) / sum);
#endif
  }
}
