// bitcast.cl - the bits of floats, where the floats are stored as half
//
// Shapes    src, dst: [count] floats
// Launch    one work-item per float: global = count, local any
// Macros    SRC_T  half|int  half: floats that the others read as bits; int: bits
//           DST_T  half|int  half: floats that are stored as half; int: bits
// Numerics  exact from half; to half rounded to nearest even
#include "common/types.cl"

#define BITS_half(value) as_int(value)
#define BITS_int(value) (value)
#define VALUE_half(bits) as_float(bits)
#define VALUE_int(bits) (bits)

__kernel void bitcast_halves(__global const SRC_T *src, __global DST_T *dst, int count) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int bits = CLGPU_CAT(BITS_, SRC_T)(LOAD(SRC_T, src, i));
  STORE(DST_T, dst, i, CLGPU_CAT(VALUE_, DST_T)(bits));
}
