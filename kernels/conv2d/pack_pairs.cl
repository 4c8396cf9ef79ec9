// pack_pairs.cl - weights in the layout of common/pairs.cl: dst[g, j / PANEL, k / 2, j % PANEL, k % 2] =
//                 src[g * group_out + j, k] - weights_zero, zero if j >= group_out or k >= depth
//
// Shapes    src: OHWI weights seen as [groups * group_out, depth]
//           dst: [groups, panels, pairs, PANEL, 2], panels = ceil(group_out / PANEL), pairs = ceil(depth / 2)
// Launch    one work-item per pair of k and panel: global = (pairs rounded up, groups * panels),
//           local = (64, 1)
// Macros    PANEL  multiple of 4  neighbouring output channels
//           SRC_T  char|uchar     element type of src
//           DST_T  char|short     element type of dst
// Numerics  exact
#include "common/types.cl"

__kernel void conv2d_pack_pairs(__global const SRC_T *src, __global DST_T *dst, int depth,
                                int group_out, int panels, int weights_zero) {
  const int pair = get_global_id(0), row = get_global_id(1), pairs = (depth + 1) / 2;
  if (pair >= pairs) return;
  const int first = row % panels * PANEL;
  const int from = (row / panels * group_out + first) * depth;
  const int to = (row * pairs + pair) * PANEL * 2;
  for (int j = 0; j < PANEL; ++j) {
    for (int k = pair * 2; k < pair * 2 + 2; ++k) {
      const bool inside = first + j < group_out && k < depth;
      STORE(DST_T, dst, to + j * 2 + k % 2, inside ? src[from + j * depth + k] - weights_zero : 0);
    }
  }
}
