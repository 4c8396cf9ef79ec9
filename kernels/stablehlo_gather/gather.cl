// gather.cl - slices of src that begin where vectors of indices say
//
//   dst[batch, offset] = src[start + offset], where start is 0 but for the axes that the index vector of
//   `batch` names, and is moved so that the whole slice lies within src
//
// Shapes    src, dst: up to 6 axes; indices: vectors of `depth` numbers, `step` elements apart;
//           table: [5][6] ints: sizes of dst; strides of src along the axes of dst; strides of the index
//           vectors along them; of each number of a vector the largest start, and the stride of src.
//           An axis of dst has a stride of one kind, and 0 of the other
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T    uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T    uchar|short|int|int2|int4|float|half    unit of dst
//           INDEX_T  int|long                                element type of indices
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/move.cl"

__kernel void stablehlo_gather_slices(__global const SRC_T *src, __global const INDEX_T *indices,
                                      __global const int *table, __global DST_T *dst, int n,
                                      int depth, int step) {
  const int i = get_global_id(0);
  if (i >= n) return;
  int at = 0, row = 0, rest = i;
  for (int axis = 5; axis >= 0; --axis) {
    const int place = rest % table[axis];
    rest /= table[axis];
    at += place * table[6 + axis];
    row += place * table[12 + axis];
  }
  for (int k = 0; k < depth; ++k) {
    const ARITH(INDEX_T) index = LOAD(INDEX_T, indices, row + k * step);
    const ARITH(INDEX_T) none = 0, largest = table[18 + k];
    at += (int)clamp(index, none, largest) * table[24 + k];
  }
  STORE(DST_T, dst, i, LOAD(SRC_T, src, at));
}
