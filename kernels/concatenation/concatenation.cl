// concatenation.cl - one input of CONCATENATION or PACK: dst[r, first + c] = src[r, c], or
//                    table[src[r, c]] for uint8 with another scale
//
// Shapes    src: [rows, cols]; dst: [rows, dst_cols], contiguous; a column is one position along the
//           axis of the concatenation and all axes after it; table: [256]
// Launch    one work-item per unit of src: global = (n rounded up, 1, 1), any local
// Macros    SRC_T   uchar|short|int|int2|int4|float|half    unit of src, see common/move.cl
//           DST_T   uchar|short|int|int2|int4|float|half    unit of dst
//           LOOKUP  0|1    1: units are bytes, converted with the table
//           and those of common/result.cl
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/move.cl"
#include "common/result.cl"

#if LOOKUP
#define TABLE_PARAM __global const uchar *table,
#define TRANSLATED(v) table[v]
#else
#define TABLE_PARAM
#define TRANSLATED(v) (v)
#endif

__kernel void concatenation_rows(__global const SRC_T *src, TABLE_PARAM RESULT_PARAM int n,
                                 int cols, int dst_cols, int first) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int at = i / cols * dst_cols + first + i % cols;
  STORE(DST_T, dst, RESULT_OF(at), TRANSLATED(LOAD(SRC_T, src, i)));
}
