// reverse_sequence.cl - the first lengths[b] elements of each sequence in reverse order, the others as they are
//
// Shapes    src, dst: [count] elements; sequences along an axis of `steps` with the stride `step`, batches
//           along one of `batches` with the stride `batch`; lengths: [batches]
// Launch    one work-item per element: global = count, local any
// Macros    SRC_T     float|half|int|long|short|char|uchar  element type of src
//           DST_T     float|half|int|long|short|char|uchar  element type of dst
//           LENGTH_T  int|long                              element type of lengths
// Numerics  exact; lengths beyond the axis are cut to it
#include "common/types.cl"

__kernel void reverse_sequence_elementwise(__global const SRC_T *src,
                                           __global const LENGTH_T *lengths, __global DST_T *dst,
                                           int count, int steps, int step, int batches, int batch) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int at = i / step % steps;
  const LENGTH_T wanted = lengths[i / batch % batches];
  const int length = (int)clamp(wanted, (LENGTH_T)0, (LENGTH_T)steps);
  const int from = at < length ? i + (length - 1 - 2 * at) * step : i;
  STORE(DST_T, dst, i, LOAD(SRC_T, src, from));
}
