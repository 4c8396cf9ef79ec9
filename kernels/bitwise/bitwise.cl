// bitwise.cl - dst[i] = a[i] OP b[i] on the bits of integers, a and b broadcast to the shape of dst
//
// Shapes    a, b: up to rank 6, contiguous, broadcast as in numpy; dst: their common shape
// Launch    one work-item per element: global = elements, local any
// Macros    OP  0|1|2|3                    0 exclusive or, 1 shift to the right, 2 shift to the left, 3 and
//           T   int|long|short|char|uchar  element type of a, b and dst
//           and those of common/broadcast.cl
// Numerics  exact. Shifts to the right copy the sign; by less than 0 bits they are by 0, by more than all bits by
//           all but one. Shifts to the left by less than 0 bits or by all and more give 0
#include "common/broadcast.cl"
#include "common/types.cl"

__kernel void bitwise_elementwise(__global const T *a, __global const T *b, __global T *dst,
                                  BROADCAST_DIMS, BROADCAST_STRIDES(a), BROADCAST_STRIDES(b)) {
  const int i = get_global_id(0);
  if (i >= BROADCAST_COUNT) return;
  BROADCAST_COORDS(i);
  const ARITH(T) x = a[BROADCAST_AT(a)], y = b[BROADCAST_AT(b)];
#if OP == 0
  dst[i] = (T)(x ^ y);
#elif OP == 3
  dst[i] = (T)(x & y);
#elif OP == 2
  dst[i] = y < 0 || y >= (int)sizeof(T) * 8 ? (T)0 : (T)(x << y);
#else
  dst[i] = (T)(x >> clamp((int)y, 0, (int)sizeof(T) * 8 - 1));
#endif
}
