// scatter.cl - windows of updates combined with src, at the places that vectors of indices give
//
//   dst = src; then dst[start + w] = COMBINE(dst[start + w], updates[vector, w]) for each index vector in
//   order and each place w of a window. start is 0 along the axes that vectors do not name. What is
//   outside of dst is ignored
//
// Shapes    src, dst: 6 axes; indices: `count` vectors of `depth` numbers, `step` elements apart;
//           updates: windows of all vectors; places: [count][7] ints, the starts and the index of the
//           window's first element in updates;
//           table: [6][6] ints: sizes of dst; of the window; strides of the window in updates; sizes of
//           the axes of vectors; their strides in updates; the axis of dst of each number of a vector
// Launch    stablehlo_scatter_places: one work-item per vector;
//           stablehlo_scatter_combine: one work-item per element of dst, which looks for the windows
//           around it; local any
// Macros    SRC_T     float|half|int|long|short|char|uchar  element type of src
//           UPDATE_T  float|half|int|long|short|char|uchar  element type of updates
//           DST_T     float|half|int|long|short|char|uchar  element type of dst
//           INDEX_T   int|long                              element type of indices
//           and that of common/combine.cl
// Numerics  the order of the vectors counts; floats are combined in float; integers wrap
#include "common/combine.cl"
#include "common/types.cl"

#define TABLE(row, axis) table[6 * (row) + (axis)]
#define FAR (1 << 30)  // outside of dst along any axis

__kernel void stablehlo_scatter_places(__global const INDEX_T *indices, __global const int *table,
                                       __global int *places, int count, int depth, int step) {
  const int i = get_global_id(0);
  if (i >= count) return;
  __global int *place = places + 7 * i;
  int at = 0, rest = i;
  for (int axis = 5; axis >= 0; --axis) {
    at += rest % TABLE(3, axis) * TABLE(4, axis);
    rest /= TABLE(3, axis);
    place[axis] = 0;
  }
  place[6] = at;
  // Vectors lie along an axis with `step` elements behind it.
  const int row = i / step * step * depth + i % step;
  for (int k = 0; k < depth; ++k) {
    const ARITH(INDEX_T) index = LOAD(INDEX_T, indices, row + k * step);
    place[TABLE(5, k)] = index > FAR ? FAR : index < -FAR ? -FAR : (int)index;
  }
}

__kernel void stablehlo_scatter_combine(__global const SRC_T *src, __global const UPDATE_T *updates,
                                        __global const int *places, __global const int *table,
                                        __global DST_T *dst, int n, int count) {
  const int i = get_global_id(0);
  if (i >= n) return;
  int at[6], rest = i;
  for (int axis = 5; axis >= 0; --axis) {
    at[axis] = rest % TABLE(0, axis);
    rest /= TABLE(0, axis);
  }
  ARITH(SRC_T) value = LOAD(SRC_T, src, i);
  for (int k = 0; k < count; ++k) {
    __global const int *place = places + 7 * k;
    int from = place[6];
    bool is_inside = true;
    for (int axis = 0; axis < 6 && is_inside; ++axis) {
      const int w = at[axis] - place[axis];
      is_inside = w >= 0 && w < TABLE(1, axis);
      from += w * TABLE(2, axis);
    }
    if (is_inside) {
      const ARITH(UPDATE_T) update = LOAD(UPDATE_T, updates, from);
      // In this order a NaN among the updates is ignored by OP 3 and 4, as in the runtimes.
      value = OP == 0 ? update : COMBINE(update, value);
    }
  }
  STORE(DST_T, dst, i, value);
}
