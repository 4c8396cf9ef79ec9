// shift_words.cl - dst[i] = a[i] >> b[i] of unsigned integers of 32 bits, a and b broadcast to the shape of dst
//
// Shapes    a, b: up to rank 6, contiguous, broadcast as in numpy; dst: their common shape
// Launch    one work-item per element: global = elements, local any
// Macros    those of common/broadcast.cl
// Numerics  exact; shifts by more than 31 bits are by 31
#include "common/broadcast.cl"

__kernel void bitwise_shift_words(__global const uint *a, __global const uint *b,
                                  __global uint *dst, BROADCAST_DIMS, BROADCAST_STRIDES(a),
                                  BROADCAST_STRIDES(b)) {
  const int i = get_global_id(0);
  if (i >= BROADCAST_COUNT) return;
  BROADCAST_COORDS(i);
  dst[i] = a[BROADCAST_AT(a)] >> min(b[BROADCAST_AT(b)], 31u);
}
