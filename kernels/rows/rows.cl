// rows.cl - a copy of some rows: dst[i] = src[first + i]
//
// Shapes    src: [1, src_h, w, c]; dst: [1, dst_h, w, c], contiguous
// Launch    one work-item per unit of dst: global = (n rounded up, 1, 1), any local
// Macros    SRC_T   uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T   uchar|short|int|int2|int4|float|half    unit of dst
//           and those of common/result.cl
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/move.cl"
#include "common/result.cl"

__kernel void rows_copy(__global const SRC_T *src, RESULT_PARAM int n, int first) {
  const int i = get_global_id(0);
  if (i >= n) return;
  STORE(DST_T, dst, RESULT_OF(i), LOAD(SRC_T, src, first + i));
}
