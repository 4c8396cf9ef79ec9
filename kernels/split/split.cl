// split.cl - one output of SPLIT, SPLIT_V or UNPACK: dst[r, c] = src[r, first + c]
//
// Shapes    src: [rows, src_cols]; dst: [rows, cols], contiguous; a column is one position along the
//           axis of the split and all axes after it
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T   uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T   uchar|short|int|int2|int4|float|half    unit of dst
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/move.cl"

__kernel void split_rows(__global const SRC_T *src, __global DST_T *dst, int n, int cols,
                         int src_cols, int first) {
  const int i = get_global_id(0);
  if (i >= n) return;
  STORE(DST_T, dst, i, LOAD(SRC_T, src, i / cols * src_cols + first + i % cols));
}
