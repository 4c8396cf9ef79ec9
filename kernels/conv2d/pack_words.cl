// pack_words.cl - 8-bit convolution weights as words of four input channels (common/word.cl), in
//                 panels of output channels:
//   dst[g, j / PANEL, tap * words + i, j % PANEL] = src[g * group_out + j, tap, 4 * i .. 4 * i + 3],
//   zero if j >= group_out or there are no such channels; words = ceil(group_in / 4)
//
// Shapes    src: OHWI weights seen as [groups * group_out, taps, group_in]
//           dst: [groups, panels, taps * words, PANEL], panels = ceil(group_out / PANEL), followed
//           by `borders` copies of the word `border`, of stored integers
// Launch    one work-item per word of depth and panel, then one row of items for the borders:
//           global = (taps * words rounded up, groups * panels + 1), local = (64, 1)
// Macros    PANEL  multiple of 4   neighbouring output channels
//           SRC_T  char|uchar      element type of src; 128 is subtracted from uchar
// Numerics  values are copied
#include "common/word.cl"

__kernel void conv2d_pack_words(__global const SRC_T *src, __global int *dst, int borders,
                                int border, int taps, int group_in, int group_out, int panels) {
  const int k = get_global_id(0), row = get_global_id(1), rows = get_global_size(1) - 1;
  const int words = (group_in + 3) / 4, depth = taps * words;
  if (k >= depth) return;
  if (row == rows) {
    for (int i = k; i < borders; i += depth) dst[rows * depth * PANEL + i] = border;
    return;
  }
  const int first = row % panels * PANEL, i = k % words * 4;
  const int from = ((row / panels * group_out + first) * taps + k / words) * group_in + i;
  const int to = (row * depth + k) * PANEL;
  for (int j = 0; j < PANEL; ++j) {
    const int count = first + j < group_out ? group_in - i : 0;
    dst[to + j] = WORD(SRC_T, src, from + j * taps * group_in, 1, count);
  }
}
