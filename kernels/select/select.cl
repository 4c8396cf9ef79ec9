// select.cl - dst[i] = condition[i] ? x[i] : y[i], all broadcast to the shape of dst
//
// Shapes    condition, x, y: up to rank 6, contiguous; dst: their common shape
// Launch    one work-item per element: global = elements, local any
// Macros    X_T    float|half|int|long|short|char|uchar  element type of x
//           Y_T    float|half|int|long|short|char|uchar  element type of y
//           DST_T  float|half|int|long|short|char|uchar  element type of dst
//           and those of common/broadcast.cl
// Numerics  values are copied; only between half and float are they converted
#include "common/broadcast.cl"
#include "common/types.cl"

__kernel void select_elementwise(__global const uchar *condition, __global const X_T *x,
                                 __global const Y_T *y, __global DST_T *dst, BROADCAST_DIMS,
                                 BROADCAST_STRIDES(condition), BROADCAST_STRIDES(x),
                                 BROADCAST_STRIDES(y)) {
  const int i = get_global_id(0);
  if (i >= BROADCAST_COUNT) return;
  BROADCAST_COORDS(i);
  ARITH(DST_T) value;
  if (condition[BROADCAST_AT(condition)] != 0) {
    value = LOAD(X_T, x, BROADCAST_AT(x));
  } else {
    value = LOAD(Y_T, y, BROADCAST_AT(y));
  }
  STORE(DST_T, dst, i, value);
}
