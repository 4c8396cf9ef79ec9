// logical.cl - dst[i] = a[i] OP b[i] on bools, a and b broadcast to the shape of dst
//
// Shapes    a, b: up to rank 6, contiguous, broadcast as in numpy; dst: their common shape
// Launch    one work-item per element: global = elements, local any
// Macros    OP  0..2  0 and, 1 or, 2 not a (b is not read)
//           and those of common/broadcast.cl
// Numerics  any nonzero byte is true; dst holds 0 or 1
#include "common/broadcast.cl"

__kernel void logical_elementwise(__global const uchar *a, __global const uchar *b,
                                  __global uchar *dst, BROADCAST_DIMS, BROADCAST_STRIDES(a),
                                  BROADCAST_STRIDES(b)) {
  const int i = get_global_id(0);
  if (i >= BROADCAST_COUNT) return;
  BROADCAST_COORDS(i);
#if OP == 0
  dst[i] = a[BROADCAST_AT(a)] != 0 && b[BROADCAST_AT(b)] != 0;
#elif OP == 1
  dst[i] = a[BROADCAST_AT(a)] != 0 || b[BROADCAST_AT(b)] != 0;
#elif OP == 2
  dst[i] = a[BROADCAST_AT(a)] == 0;
#else
#error "OP is out of range (0..2)"
#endif
}
