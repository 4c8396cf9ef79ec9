// merge.cl - attention from sums over chunks of the keys: dst[r, c] = sum over i of f[i] * s[i, c] /
//            sum over i of f[i] * t[i], where f[i] = exp(m[i] - max over i of m[i]), and m, t, s =
//            parts[r, i, 0], parts[r, i, 1], parts[r, i, 2 ..]
//
// Shapes    parts: [rows, chunks, 2 + cols]: of the weights' exponents the maximum, the sum of the
//           weights, and the sums of the values; dst: [rows, cols]
// Launch    one work-item per element of dst: global = (rows * cols rounded up, 1, 1), any local
// Macros    DST_T  float|half  element type of dst
// Numerics  float; chunks of which the maximum is -infinity have no part in it
#include "common/types.cl"

__kernel void composite_merge(__global const float *parts, __global DST_T *dst, int rows, int cols,
                              int chunks) {
  const int i = get_global_id(0);
  if (i >= rows * cols) return;
  const int pitch = cols + 2;
  __global const float *row = parts + i / cols * chunks * pitch;
  const int col = i % cols + 2;
  float largest = -INFINITY;
  for (int c = 0; c < chunks; ++c) largest = fmax(largest, row[c * pitch]);
  float total = 0.0f, sum = 0.0f;
  for (int c = 0; c < chunks; ++c) {
    if (row[c * pitch] == -INFINITY) continue;
    const float factor = exp(row[c * pitch] - largest);
    total += factor * row[c * pitch + 1];
    sum += factor * row[c * pitch + col];
  }
  STORE(DST_T, dst, i, sum / total);
}
