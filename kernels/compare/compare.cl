// compare.cl - dst[i] = a[i] OP b[i], a and b broadcast to the shape of dst
//
// Shapes    a, b: up to rank 6, contiguous, broadcast as in numpy; dst: their common shape, bool
// Launch    one work-item per element: global = elements, local any
// Macros    OP      0..5                       0 ==, 1 !=, 2 >, 3 >=, 4 <, 5 <=
//           SCALED  0|1                        1: quantised integers, compared on one scale
//           A_T     float|half|int|long|short|char|uchar  element type of a
//           B_T     float|half|int|long|short|char|uchar  element type of b
//           and those of common/broadcast.cl
// Numerics  half is widened to float, which is exact; quantised integers are scaled bit for bit as in
//           TFLite's reference kernels; dst holds 0 or 1
#include "common/broadcast.cl"
#include "common/quantized_add.cl"
#include "common/types.cl"

#if SCALED
#define PAIR_PARAMS QUANTIZED_PAIR_PARAMS,
#define VALUE_A(x) PAIR_SCALED_A(int, x)
#define VALUE_B(x) PAIR_SCALED_B(int, x)
#else
#define PAIR_PARAMS
#define VALUE_A(x) (x)
#define VALUE_B(x) (x)
#endif

__kernel void compare_elementwise(__global const A_T *a, __global const B_T *b, __global uchar *dst,
                                  PAIR_PARAMS BROADCAST_DIMS, BROADCAST_STRIDES(a),
                                  BROADCAST_STRIDES(b)) {
  const int i = get_global_id(0);
  if (i >= BROADCAST_COUNT) return;
  BROADCAST_COORDS(i);
  const ARITH(A_T) x = VALUE_A(LOAD(A_T, a, BROADCAST_AT(a)));
  const ARITH(B_T) y = VALUE_B(LOAD(B_T, b, BROADCAST_AT(b)));
#if OP == 0
  dst[i] = x == y;
#elif OP == 1
  dst[i] = x != y;
#elif OP == 2
  dst[i] = x > y;
#elif OP == 3
  dst[i] = x >= y;
#elif OP == 4
  dst[i] = x < y;
#elif OP == 5
  dst[i] = x <= y;
#else
#error "OP is out of range (0..5)"
#endif
}
