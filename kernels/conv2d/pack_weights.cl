// pack_weights.cl - convolution weights laid out for reading by output channel:
//   dst[g, j / PANEL, k, j % PANEL] = src[g * group_out + j, k], zero where j >= group_out
//
// Shapes    src: OHWI weights seen as [groups * group_out, depth], depth = filter_h * filter_w * group_in
//           dst: [groups, panels, depth, PANEL], panels = ceil(group_out / PANEL), then `zeros` zeros
// Launch    one work-item per element of dst: global = (elements + zeros, rounded up), local = (64)
// Macros    PANEL  multiple of 4   output channels that lie side by side
//           SRC_T  float|half      element type of src
//           DST_T  float|half      element type of dst
// Numerics  values are copied; float to half rounds to nearest even
#include "common/types.cl"
#ifndef PANEL
#error "PANEL is required (multiple of 4)"
#endif
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif

__kernel void conv2d_pack_weights(__global const SRC_T *src, __global DST_T *dst, int elements,
                                  int zeros, int depth, int group_out, int panels) {
  const int i = get_global_id(0);
  if (i >= elements + zeros) return;
  const int row = i / PANEL;  // of [groups * panels * depth]
  const int k = row % depth;
  const int panel = row / depth % panels;
  const int group = row / depth / panels;
  const int j = panel * PANEL + i % PANEL;
  float x = 0.0f;
  if (i < elements && j < group_out) {
    x = LOAD(SRC_T, src, (group * group_out + j) * depth + k);
  }
  STORE(DST_T, dst, i, x);
}
