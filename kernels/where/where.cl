// where.cl - the places of the elements that are not 0, in ascending order
//
// Shapes    src: [count], of the shape [d0, .., d(rank - 1)]; dst: [rows, rank]; before: [chunks + 1]; total: one
//           element; a chunk is CHUNK elements, chunks = ceil(count / CHUNK)
// Launch    where_count, where_write: global = (chunks rounded up, 1, 1), any local
//           where_offsets, where_total: one work-group: global = local = (WG, 1, 1)
// Macros    SRC_T  float|half|int|long|short|char|uchar  element type of src
//           DST_T  int|long                              element type of dst or total
//           CHUNK  1 or more                             elements that one work-item looks at
//           WG     power of two, 1..256                  work-items that add the chunks' numbers
// Numerics  exact. NaN is not 0, -0.0 is. where_count writes to before[i] how many there are in chunk i;
//           where_offsets replaces that by how many there are in the chunks before. Rows behind the last place are 0
#include "common/local.cl"
#include "common/local_sums.cl"
#include "common/types.cl"

__kernel void where_count(__global const SRC_T *src, __global int *before, int count, int chunks) {
  const int chunk = get_global_id(0);
  if (chunk >= chunks) return;
  const int end = min(count - chunk * CHUNK, CHUNK);
  int found = 0;
  for (int i = 0; i < end; ++i) found += LOAD(SRC_T, src, chunk * CHUNK + i) != 0 ? 1 : 0;
  before[chunk] = found;
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void where_offsets(__global int *before,
                                                                            int chunks) {
  LOCAL_ARRAY(int, sums, WG);
  const int item = get_local_id(0);
  int total = 0;
  for (int first = 0; first < chunks; first += WG) {
    const int chunk = first + item;
    const int own = chunk < chunks ? before[chunk] : 0;
    sums[item] = own;
    LOCAL_RUNNING_SUMS(sums, item, WG);
    if (chunk < chunks) before[chunk] = total + sums[item] - own;
    total += sums[WG - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) before[chunks] = total;
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void where_total(
    __global const int *before, __global DST_T *total, int chunks) {
  LOCAL_ARRAY(int, sums, WG);
  const int item = get_local_id(0);
  int own = 0;
  for (int chunk = item; chunk < chunks; chunk += WG) own += before[chunk];
  sums[item] = own;
  LOCAL_SUM(sums, item, WG);
  if (item == 0) STORE(DST_T, total, 0, sums[0]);
}

__kernel void where_write(__global const SRC_T *src, __global const int *before,
                          __global DST_T *dst, int count, int chunks, int rows, int rank, int d0,
                          int d1, int d2, int d3, int d4, int d5) {
  const int chunk = get_global_id(0);
  if (chunk >= chunks) return;
  const int dims[6] = {d0, d1, d2, d3, d4, d5};
  const int end = min(count - chunk * CHUNK, CHUNK);
  int row = before[chunk];
  for (int i = 0; i < end && row < rows; ++i) {
    int place = chunk * CHUNK + i;
    if (LOAD(SRC_T, src, place) == 0) continue;
    for (int axis = rank - 1; axis >= 0; --axis) {
      STORE(DST_T, dst, row * rank + axis, place % dims[axis]);
      place /= dims[axis];
    }
    ++row;
  }
  // The host may have counted numbers that were rounded to 0 since.
  if (chunk < chunks - 1) return;
  for (int i = before[chunks] * rank; i < rows * rank; ++i) STORE(DST_T, dst, i, 0);
}
