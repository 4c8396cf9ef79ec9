// softmax.cl - over the last axis: dst[r, c] = exp(beta * (src[r, c] - max_r)) / sum_r, or its logarithm
//
// Shapes    src, dst: [rows, cols], row-major, contiguous
// Launch    global = (ceil(rows / ROWS) * ROWS * WG, 1, 1), local = (ROWS * WG, 1, 1): a work-group
//           takes ROWS rows, WG work-items share each
// Macros    ROWS    power of two, 1..64     rows of a work-group
//           WG      power of two, 1..256    work-items per row
//           SRC_T   float|half              element type of src
//           DST_T   float|half              element type of dst
//           LOG     0|1                     1: beta * (x - max) - log(sum)
// Numerics  max, exp and sum in float, whatever the storage is; WG partial sums, added pairwise
#include "common/local.cl"
#include "common/types.cl"

__kernel __attribute__((reqd_work_group_size(ROWS * WG, 1, 1))) void softmax_rows(
    __global const SRC_T *src, __global DST_T *dst, int rows, int cols, float beta) {
  const int item = get_local_id(0) % WG;
  const int row = get_group_id(0) * ROWS + get_local_id(0) / WG;
  const int end = row < rows ? cols : 0;  // rows past the end have no elements
  src += (size_t)row * cols;
  dst += (size_t)row * cols;

  float largest = -INFINITY;
  for (int c = item; c < end; c += WG) largest = fmax(largest, LOAD(SRC_T, src, c));
#if WG > 1
  LOCAL_ARRAY(float, shared, ROWS *WG);
  const int mine = get_local_id(0);
  shared[mine] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) shared[mine] = fmax(shared[mine], shared[mine + step]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  largest = shared[mine - item];
  barrier(CLK_LOCAL_MEM_FENCE);
#endif

  float sum = 0.0f;
  for (int c = item; c < end; c += WG) sum += exp(beta * (LOAD(SRC_T, src, c) - largest));
#if WG > 1
  shared[mine] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) shared[mine] += shared[mine + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = shared[mine - item];
#endif

  for (int c = item; c < end; c += WG) {
    const float x = beta * (LOAD(SRC_T, src, c) - largest);
#if LOG
    STORE(DST_T, dst, c, x - log(sum));
#else
    STORE(DST_T, dst, c, exp(x) / sum);
#endif
  }
}
