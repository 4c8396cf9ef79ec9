// any.cl - dst[0] = 1 if an element of src is not 0, else 0
//
// Shapes    src: any, contiguous; dst: [1]
// Launch    one work-item: gates have an element per sample
// Macros    SRC_T  float|half|int|long|short|char|uchar  element type of src
// Numerics  exact; NaN is not 0, -0 is
#include "common/types.cl"

__kernel void predicate_any(__global const SRC_T *src, __global int *dst, int count) {
  int found = 0;
  for (int i = 0; i < count; ++i) found |= LOAD(SRC_T, src, i) != 0;
  dst[0] = found;
}
