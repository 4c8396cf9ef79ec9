// reduce_window.cl - dst[o] = init combined with all elements of a window of src, one after the other
//
//   Position p of src along an axis, counted from `low` before it, has element (p - low) / base, or
//   init between elements and outside. The window of o has the positions o * step + w * apart for all w
//   below its size, in the order of memory.
//
// Shapes    src, dst: 6 axes; init: [1]; table: [8][6] ints, for each axis: sizes of dst; sizes of the
//           window; step; apart; low; base; positions between the first and the last element, both
//           included; strides of src. moved: [axes], those along which the window has several positions
// Launch    one work-item per element of dst: global = n, local any
// Macros    SRC_T   float|half|int|long|short|char|uchar  element type of src
//           INIT_T  float|half|int|long|short|char|uchar  element type of init
//           DST_T   float|half|int|long|short|char|uchar  element type of dst
//           and that of common/combine.cl
// Numerics  floats are combined in float; integers wrap
#include "common/combine.cl"
#include "common/types.cl"

#define TABLE(row, axis) table[6 * (row) + (axis)]

__kernel void reduce_window_walk(__global const SRC_T *src, __global const INIT_T *init,
                                 __global const int *table, __global const int *moved,
                                 __global DST_T *dst, int n, int axes, int positions) {
  const int i = get_global_id(0);
  if (i >= n) return;
  // The first position of the window: its part of the index in src, if it moves along no axis.
  int first[6], still = 0, rest = i;
  bool is_inside = true;
  for (int axis = 5; axis >= 0; --axis) {
    const int size = TABLE(0, axis), base = TABLE(5, axis);
    const int p = rest % size * TABLE(2, axis) - TABLE(4, axis);
    rest /= size;
    first[axis] = p;
    if (TABLE(1, axis) > 1) continue;
    is_inside = is_inside && p >= 0 && p < TABLE(6, axis) && p % base == 0;
    still += p / base * TABLE(7, axis);
  }
  const ARITH(SRC_T) outside = LOAD(INIT_T, init, 0);
  ARITH(SRC_T) sum = outside;
  for (int w = 0; w < positions; ++w) {
    int at = still, left = w;
    bool is_element = is_inside;
    for (int k = axes - 1; k >= 0; --k) {
      const int axis = moved[k], base = TABLE(5, axis);
      const int p = first[axis] + left % TABLE(1, axis) * TABLE(3, axis);
      left /= TABLE(1, axis);
      is_element = is_element && p >= 0 && p < TABLE(6, axis) && p % base == 0;
      at += p / base * TABLE(7, axis);
    }
    const ARITH(SRC_T) value = is_element ? LOAD(SRC_T, src, at) : outside;
    sum = COMBINE(sum, value);
  }
  STORE(DST_T, dst, i, sum);
}
