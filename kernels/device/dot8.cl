// dot8.cl - dst[i] = start[i] + the sum of four products of int8, with the device's instruction: a device
//           has the instruction if this builds and gives the right numbers
//
// Shapes    a, b: [n] words of four int8; start, dst: [n]
// Launch    one work-item per word: global = (n), local = (1)
// Macros    DOT8  1..3  see common/dot8.cl
// Numerics  int, wraps around
#include "common/dot8.cl"

__kernel void device_dot8(__global const uint *a, __global const uint *b, __global const int *start,
                          __global int *dst) {
  const int i = get_global_id(0);
  dst[i] = DOT8_ADD(a[i], b[i], start[i]);
}
