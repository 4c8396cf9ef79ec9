// segment.cl - dst[s] = the sum, product, maximum or minimum of the elements src[i] whose ids[i] is s
//
// Shapes    src: [count, inner]; ids: [count]; dst: [segments, inner]
// Launch    segment_reduce: one work-item per element of dst: global = elements, local any
// Macros    OP     0..3            0 sum, 1 product, 2 maximum, 3 minimum
//           SRC_T  float|half|int  element type of src
//           DST_T  float|half|int  element type of dst
//           FIRST  see ops/families/segment.cpp: a literal, the value of a segment without elements
// Numerics  elements are taken in their order; integers wrap. Ids out of range are ignored.
#include "common/types.cl"

__kernel void segment_reduce(__global const SRC_T *src, __global const int *ids,
                             __global DST_T *dst, int elements, int count, int inner) {
  const int i = get_global_id(0);
  if (i >= elements) return;
  const int segment = i / inner, at = i - segment * inner;
  ARITH(SRC_T) result = FIRST;
  for (int k = 0; k < count; ++k) {
    if (ids[k] != segment) continue;
    const ARITH(SRC_T) value = LOAD(SRC_T, src, k * inner + at);
#if OP == 0
    result += value;
#elif OP == 1
    result *= value;
#elif OP == 2
    result = result < value ? value : result;
#else
    result = value < result ? value : result;
#endif
  }
  STORE(DST_T, dst, i, result);
}
