// cumsum.cl - dst[o, i, n] = sum over j <= i of src[o, j, n]
//
// Shapes    src, dst: [outer, length, inner]; a line is one (o, n), lines = outer * inner
// Launch    cumsum_serial: global = (lines rounded up, 1, 1), any local
//           cumsum_scan: one work-group per line: global = (lines * WG, 1, 1), local = (WG, 1, 1)
// Macros    WG         power of two, 1..256  work-items that scan a line; any for cumsum_serial
//           SRC_T      float|half|int|long   element type of src
//           DST_T      float|half|int|long   element type of dst
//           EXCLUSIVE  0|1                   1: j < i instead of j <= i
//           REVERSE    0|1                   1: sums run from the end
// Numerics  float sums: serial in blocks of 32, scan pairwise within WG elements; integers wrap
#include "common/local.cl"
#include "common/types.cl"

#define ACC_T ARITH(SRC_T)
#if REVERSE
#define STEP_AT(i) ((length - 1 - (i)) * inner)
#else
#define STEP_AT(i) ((i) * inner)
#endif
#define BLOCK 32

__kernel void cumsum_serial(__global const SRC_T *src, __global DST_T *dst, int lines, int length,
                            int inner) {
  const int line = get_global_id(0);
  if (line >= lines) return;
  const int start = line / inner * length * inner + line % inner;
  ACC_T total = 0;
  int i = 0;
  while (i < length) {
    const int end = min(i + BLOCK, length);
    ACC_T part = 0;
    for (; i < end; ++i) {
      const int at = start + STEP_AT(i);
      const ACC_T value = LOAD(SRC_T, src, at);
#if EXCLUSIVE
      STORE(DST_T, dst, at, total + part);
      part += value;
#else
      part += value;
      STORE(DST_T, dst, at, total + part);
#endif
    }
    total += part;
  }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void cumsum_scan(__global const SRC_T *src,
                                                                          __global DST_T *dst,
                                                                          int lines, int length,
                                                                          int inner) {
  LOCAL_ARRAY(ACC_T, sums, WG);
  const int item = get_local_id(0);
  const int line = get_group_id(0);
  const int start = line / inner * length * inner + line % inner;
  ACC_T total = 0;
  for (int chunk = 0; chunk < length; chunk += WG) {
    const int i = chunk + item;
    const int at = start + STEP_AT(i);
    sums[item] = i < length ? LOAD(SRC_T, src, at) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = 1; reach < WG; reach *= 2) {
      const ACC_T before = item >= reach ? sums[item - reach] : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      sums[item] += before;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
#if EXCLUSIVE
    const ACC_T inside = item > 0 ? sums[item - 1] : 0;
#else
    const ACC_T inside = sums[item];
#endif
    if (i < length) STORE(DST_T, dst, at, total + inside);
    total += sums[WG - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
