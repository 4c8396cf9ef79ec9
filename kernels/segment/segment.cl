// segment.cl - dst[s] = the sum, product, maximum or minimum of the elements src[i] whose ids[i] is s
//
// Shapes    src: [count, inner]; ids: [count]; dst: [segments, inner]; number: one element
// Launch    segment_reduce: one work-item per element of dst: global = elements, local any
//           segment_number: one work-group: global = local = (WG, 1, 1)
// Macros    OP     0..3            0 sum, 1 product, 2 maximum, 3 minimum
//           SRC_T  float|half|int  element type of src
//           DST_T  float|half|int  element type of dst
//           WG     1..256            work-items of segment_number
//           FIRST  see ops/families/segment.cpp: a literal, the value of a segment without elements
// Numerics  elements are taken in their order; integers wrap. Ids out of range are ignored.
//           segment_number gives -1 for ids that do not ascend from 0 by steps of 0 or 1
#include "common/local.cl"
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

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void segment_number(
    __global const int *ids, __global int *number, int count) {
  LOCAL_ARRAY(int, wrong, WG);
  const int item = get_local_id(0);
  int is_wrong = 0;
  for (int i = item; i < count; i += WG) {
    const int step = i > 0 ? ids[i] - ids[i - 1] : ids[i];
    is_wrong |= step != 0 && (step != 1 || i == 0) ? 1 : 0;
  }
  wrong[item] = is_wrong;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item > 0) return;
  for (int i = 1; i < WG; ++i) is_wrong |= wrong[i];
  number[0] = is_wrong ? -1 : ids[count - 1] + 1;
}
