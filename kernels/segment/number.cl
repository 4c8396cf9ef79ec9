// number.cl - number = the number of segments of ids that ascend from 0 by steps of 0 or 1
//
// Shapes    ids: [count]; number: one element
// Launch    segment_number: one work-group: global = local = (WG, 1, 1)
// Macros    WG     1..256            work-items
// Numerics  -1 for ids that do not ascend in this way
#include "common/local.cl"

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
