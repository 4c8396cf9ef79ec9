// scatter_nd.cl - dst[indices[i]] += updates[i] for each i, from zeros; or dst[indices[i]] = updates[i],
// and rest in other places
//
// Shapes    indices: [count, depth]; updates: [count, inner]; dst: [slices, inner]; places: [count];
//           d0 to d5: the sizes of dst, of which `depth` are indexed
// Launch    scatter_nd_places: one work-item per update;
//           scatter_nd_sum, scatter_nd_replace: one work-item per element of dst, which looks for the
//           updates of its slice
// Macros    SRC_T    float|half|int|long|char|uchar  element type of updates
//           DST_T    float|half|int|long|char|uchar  element type of dst
//           REST_T   float|half|int|long|char|uchar  element type of rest
//           INDEX_T  int|long                        element type of indices
//           IS_BOOL  0|1                             1: sums are 1 unless all parts are 0
// Numerics  updates of an element are added in their order, or the last one counts; integers wrap. Indices
//           out of range are ignored
#include "common/types.cl"

__kernel void scatter_nd_places(__global const INDEX_T *indices, __global int *places, int count,
                                int depth, int d0, int d1, int d2, int d3, int d4, int d5) {
  const int i = get_global_id(0);
  if (i >= count) return;
  const int sizes[6] = {d0, d1, d2, d3, d4, d5};
  int place = 0;
  for (int k = 0; k < depth; ++k) {
    const ARITH(INDEX_T) index = LOAD(INDEX_T, indices, i * depth + k);
    const bool is_inside = place >= 0 && index >= 0 && index < sizes[k];
    place = is_inside ? place * sizes[k] + (int)index : -1;
  }
  places[i] = place;
}

__kernel void scatter_nd_sum(__global const SRC_T *updates, __global const int *places,
                             __global DST_T *dst, int elements, int count, int inner) {
  const int i = get_global_id(0);
  if (i >= elements) return;
  const int slice = i / inner, at = i - slice * inner;
  ARITH(SRC_T) sum = 0;
  for (int k = 0; k < count; ++k) {
    if (places[k] == slice) sum += LOAD(SRC_T, updates, k * inner + at);
  }
#if IS_BOOL
  sum = sum != 0;
#endif
  STORE(DST_T, dst, i, sum);
}

// step: 1, or 0 if all places get the one update.
__kernel void scatter_nd_replace(__global const SRC_T *updates, __global const int *places,
                                 __global const REST_T *rest, __global DST_T *dst, int elements,
                                 int count, int step) {
  const int i = get_global_id(0);
  if (i >= elements) return;
  int last = count - 1;
  while (last >= 0 && places[last] != i) --last;
  const ARITH(SRC_T) value = last < 0 ? LOAD(REST_T, rest, 0) : LOAD(SRC_T, updates, last * step);
  STORE(DST_T, dst, i, value);
}
