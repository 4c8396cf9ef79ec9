// local_response_normalization.cl - dst[r, c] = act(src[r, c] * (bias + alpha * sum_rc)^-beta), where
// sum_rc = sum of src[r, j]^2 over |j - c| <= radius
//
// Shapes    src, dst: [rows, cols], size = rows * cols
// Launch    global = (size rounded up, 1, 1), any local
// Macros    SRC_T  float|half  element type of src
//           DST_T  float|half  element type of dst
// Numerics  sum and power in float; ACT and ACT_ALPHA: see common/activation.cl
#include "common/activation.cl"
#include "common/types.cl"

__kernel void local_response_normalization_direct(__global const SRC_T *src, __global DST_T *dst,
                                                  int size, int cols, int radius, float bias,
                                                  float alpha, float beta) {
  const int at = get_global_id(0);
  if (at >= size) return;
  const int c = at % cols;
  const int begin = at - min(c, radius);
  const int end = at + min(cols - 1 - c, radius);
  float sum = 0.0f;
  for (int i = begin; i <= end; ++i) {
    const float x = LOAD(SRC_T, src, i);
    sum += x * x;
  }
  const float y = LOAD(SRC_T, src, at) * pow(bias + alpha * sum, -beta);
  STORE(DST_T, dst, at, ACTIVATE(y));
}
