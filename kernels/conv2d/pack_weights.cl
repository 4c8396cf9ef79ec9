// pack_weights.cl - convolution weights in panels of output channels:
//   dst[g, j / PANEL, k, j % PANEL] = src[g * group_out + j, k], zero if j >= group_out
//
// Shapes    src: OHWI weights seen as [groups * group_out, depth], depth = filter_h * filter_w * group_in
//           dst: [groups, panels, depth, PANEL], panels = ceil(group_out / PANEL), followed by `zeros` zeros
// Launch    one work-item per k and panel, then one row of items for the zeros:
//           global = (depth rounded up, groups * panels + 1), local = (64, 1)
// Macros    PANEL  multiple of 4   neighbouring output channels
//           SRC_T  float|half|char element type of src
//           DST_T  float|half|char element type of dst
// Numerics  values are copied; float to half rounds to nearest even
#include "common/types.cl"

__kernel void conv2d_pack_weights(__global const SRC_T *src, __global DST_T *dst, int zeros,
                                  int depth, int group_out, int panels) {
  const int k = get_global_id(0), row = get_global_id(1), rows = get_global_size(1) - 1;
  if (k >= depth) return;
  if (row == rows) {
    for (int i = k; i < zeros; i += depth) STORE(DST_T, dst, rows * depth * PANEL + i, 0.0f);
    return;
  }
  const int first = row % panels * PANEL;
  const int from = (row / panels * group_out + first) * depth + k;
  const int to = (row * depth + k) * PANEL;
  for (int j = 0; j < PANEL; ++j) {
    const float x = first + j < group_out ? LOAD(SRC_T, src, from + j * depth) : 0.0f;
    STORE(DST_T, dst, to + j, x);
  }
}
