// bucketize.cl - dst[i] = the number of boundaries that are not above src[i]
//
// Shapes    src, dst: [n]; boundaries: [count], ascending
// Launch    one work-item per element: global = n, local any
// Macros    SRC_T  float|half|int|long  element type of src
// Numerics  integers are compared as the floats next to them. NaN is above all boundaries
#include "common/types.cl"

__kernel void bucketize_search(__global const SRC_T *src, __global const float *boundaries,
                               __global int *dst, int n, int count) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const float value = (float)LOAD(SRC_T, src, i);
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (value < boundaries[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  dst[i] = low;
}
