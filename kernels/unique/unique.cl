// unique.cl - the elements without those that equal an earlier one, and for each element the place of its value there
//
// Shapes    src, first, order: [count]; values: [number]; places: [count]; number: one element
// Launch    unique_first, unique_write: global = (count rounded up, 1, 1), any local
//           unique_order, unique_number: one work-group: global = local = (WG, 1, 1)
// Macros    SRC_T    int|long|short|char|uchar  element type of src and values
//           PLACE_T  int|long                   element type of places
//           WG       power of two, 1..256       work-items that add numbers
// Numerics  exact. unique_first writes to first[i] the least j with src[j] = src[i]; unique_order to order[i], where
//           first[i] = i, how many such elements are in front of it. Values behind the last one are not written
#include "common/local.cl"
#include "common/local_sums.cl"
#include "common/types.cl"

__kernel void unique_first(__global const SRC_T *src, __global int *first, int count) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const SRC_T value = LOAD(SRC_T, src, i);
  int j = 0;
  while (LOAD(SRC_T, src, j) != value) ++j;
  first[i] = j;
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void unique_order(
    __global const int *first, __global int *order, int count) {
  LOCAL_ARRAY(int, sums, WG);
  const int item = get_local_id(0);
  int total = 0;
  for (int start = 0; start < count; start += WG) {
    const int i = start + item;
    const int own = i < count && first[i] == i ? 1 : 0;
    sums[item] = own;
    LOCAL_RUNNING_SUMS(sums, item, WG);
    if (i < count) order[i] = total + sums[item] - own;
    total += sums[WG - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void unique_number(
    __global const int *first, __global int *number, int count) {
  LOCAL_ARRAY(int, sums, WG);
  const int item = get_local_id(0);
  int own = 0;
  for (int i = item; i < count; i += WG) own += first[i] == i ? 1 : 0;
  sums[item] = own;
  LOCAL_SUM(sums, item, WG);
  if (item == 0) number[0] = sums[0];
}

__kernel void unique_write(__global const SRC_T *src, __global const int *first,
                           __global const int *order, __global SRC_T *values,
                           __global PLACE_T *places, int count, int number) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int earliest = first[i], place = order[earliest];
  STORE(PLACE_T, places, i, place);
  if (earliest == i && place < number) STORE(SRC_T, values, place, LOAD(SRC_T, src, i));
}
