// toy.cl - dst = max(y, x), for tests/toy
//
// Shapes    y, x, dst [n]
// Launch    a work-item for EACH elements, one after the other
// Macros    Y_T, X_T, DST_T  int  element types
//           EACH             1..  elements of a work-item
// Numerics  exact
#include "common/types.cl"

__kernel void toy_broadcast(__global const Y_T* y, __global const X_T* x, __global DST_T* dst,
                            int n) {
  const int first = (int)get_global_id(0) * EACH;
  for (int i = first; i < min(first + EACH, n); ++i)
    STORE(DST_T, dst, i, max(LOAD(Y_T, y, i), LOAD(X_T, x, i)));
}
