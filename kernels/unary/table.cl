// table.cl - dst[i] = table[src[i]]: any function of a quantised tensor
//
// Shapes    src, dst: the same, contiguous; table: one element for each value that src can hold; value
//           v is at v modulo the table's size (256 or 65536)
// Launch    one work-item per WIDTH elements: global = ceil(count / WIDTH), local any
// Macros    WIDTH  1|4|16            elements of a work-item; the runs of a slice begin at multiples of it
//           SRC_T  char|uchar|short  element type of src
//           DST_T  char|uchar|short  element type of dst and table
//           and those of common/result.cl
// Numerics  exact
#include "common/result.cl"
#include "common/types.cl"

#define INDEX_char(x) ((uchar)(x))
#define INDEX_uchar(x) (x)
#define INDEX_short(x) ((ushort)(x))
#define RESULT(x) table[CLGPU_CAT(INDEX_, SRC_T)(x)]

#if WIDTH > 1
#define READ(p) (*(__global const CLGPU_CAT(SRC_T, WIDTH) *)(p))
#define WRITE(i, v) CLGPU_CAT(CLGPU_CAT(STORE, WIDTH), _ALIGNED)(DST_T, dst, i, v)
#define RESULT4(x) RESULT((x).s0), RESULT((x).s1), RESULT((x).s2), RESULT((x).s3)
#if WIDTH == 4
#define RESULTS(x) ((int4)(RESULT4(x)))
#else
#define RESULTS(x) \
  ((int16)(RESULT4((x).lo.lo), RESULT4((x).lo.hi), RESULT4((x).hi.lo), RESULT4((x).hi.hi)))
#endif
#endif

__kernel void unary_table(__global const SRC_T *src,
                          RESULT_PARAM __global const STEPS_T(DST_T) * table, int count) {
  const int i = (int)get_global_id(0) * WIDTH;
#if WIDTH > 1
  if (i + WIDTH <= count) {
    const CLGPU_CAT(SRC_T, WIDTH) x = READ(src + i);
    WRITE(RESULT_OF(i), RESULTS(x));
    return;
  }
#endif
  for (int k = i; k < min(i + WIDTH, count); ++k) {
    STORE(DST_T, dst, RESULT_OF(k), RESULT(src[k]));
  }
}
