// toy.cl - dst = x as an integer from 0 to 255, for tests/toy
//
// Shapes    x, dst [n]
// Launch    a work-item for EACH elements, one after the other
// Macros    X_T, DST_T  float  element types
//           EACH        1..    elements of a work-item
// Numerics  exact
#include "common/types.cl"

__kernel void toy_rounded(__global const X_T* x, __global DST_T* dst, int n) {
  const int first = (int)get_global_id(0) * EACH;
  for (int i = first; i < min(first + EACH, n); ++i)
    STORE(DST_T, dst, i, clamp(rint(LOAD(X_T, x, i)), 0.0f, 255.0f));
}
