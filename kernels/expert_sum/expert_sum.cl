// expert_sum.cl - dst[r, n] = sum over i of weights[r, i] * y[r, i, n]
//
// Shapes    y: [rows, count, cols]; weights: [rows, count]; dst: [rows, cols]
// Launch    one work-item per element of dst: global = (cols rounded up, rows)
// Macros    Y_T, WEIGHT_T, DST_T  float|half  element types of y, weights, dst
// Numerics  one float sum in the order of i, without the terms whose weight is 0, whatever y is there. An
//           infinite weight gives NaN: the file multiplies it by 0 for all other experts
#include "common/types.cl"

__kernel void expert_sum(__global const Y_T *y, __global const WEIGHT_T *weights,
                         __global DST_T *dst, int cols, int count) {
  const int n = get_global_id(0), row = get_global_id(1);
  if (n >= cols) return;
  weights += (size_t)row * count;
  y += (size_t)row * count * cols;
  float sum = 0.0f;
  for (int i = 0; i < count; ++i) {
    const float weight = LOAD(WEIGHT_T, weights, i);
    const float product = mad(weight, LOAD(Y_T, y, n), weight - weight);  // NaN if it is infinite
    sum += weight == 0.0f ? 0.0f : product;
    y += cols;
  }
  STORE(DST_T, dst, (size_t)row * cols + n, sum);
}
