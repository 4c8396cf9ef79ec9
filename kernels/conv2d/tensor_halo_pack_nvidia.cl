// tensor_halo_pack_nvidia.cl - weights in the order in which the lanes of a warp read them as right operands
//                              in tensor_halo_nvidia.cl (registers b of common/mma.cl)
//
// Shapes    src: [out_c, FILTER_H, FILTER_W, in_c]
//           dst: [blocks, chunks, FILTER_W, UNITS / 2, FILTER_H, ceil(BLOCKS / 2), 32 lanes, R] of 32 bits
//           each, followed by one unused step; blocks: of 8 * BLOCKS channels;
//           R = 2 if BLOCKS is 1, else 4: registers 0 and 1 of one or two blocks of 8 columns.
//           Column j of block b is channel j / 2 * (2 * BLOCKS) + b * 2 + j % 2, so that a lane has
//           2 * BLOCKS neighbouring channels; zero if there is no channel
// Launch    one work-item per register: global = (registers, rounded up), local = (64)
// Macros    FILTER_H, FILTER_W  1..  filter, at most 9 rows
//           BLOCKS  1|2|4         blocks of 8 output channels of a warp
//           UNITS   2|4           units of 16 bytes per pixel and chunk
//           SRC_T   float|half    element type of src, or char
//           DST_T   float|half    contents of a register: a float, two halves or, for char, four chars
//                                 of neighbouring channels
// Numerics  float to half rounds to nearest even; floats are rounded to TF32 (10 bits of mantissa), to
//           nearest, ties away from zero
#include "common/types.cl"

#define EACH_float 1
#define EACH_half 2
#define EACH_char 4
#define EACH CLGPU_CAT(EACH_, DST_T)  // channels of a register
#define REGISTERS (BLOCKS == 1 ? 2 : 4)
#define PAIRS (BLOCKS == 1 ? 1 : BLOCKS / 2)

__kernel void conv2d_tensor_halo_pack(__global const SRC_T *src, __global DST_T *dst, int registers,
                                      int chunks, int in_c, int out_c) {
  const int i = get_global_id(0);
  if (i >= registers) return;
  const int reg = i % REGISTERS, lane = i / REGISTERS % 32, g = lane / 4, q = lane % 4;
  int rest = i / REGISTERS / 32;
  const int pair = rest % PAIRS;
  rest /= PAIRS;
  const int u = rest % FILTER_H;
  rest /= FILTER_H;
  const int depth = rest % (UNITS / 2);
  rest /= UNITS / 2;
  const int t = rest % FILTER_W;
  rest /= FILTER_W;
  const int chunk = rest % chunks, block = rest / chunks;
  const int o = (block * 4 + g / 2) * (2 * BLOCKS) + (pair * 2 + reg / 2) * 2 + g % 2;
  const int c = ((chunk * (UNITS / 2) + depth) * 8 + reg % 2 * 4 + q) * EACH;
  for (int e = 0; e < EACH; ++e) {
    ARITH(SRC_T) x = 0;
    if (o < out_c && c + e < in_c) {
      x = LOAD(SRC_T, src, ((o * FILTER_H + u) * FILTER_W + t) * in_c + c + e);
    }
#if EACH == 1
    // Infinities and NaNs are not rounded.
    if (isfinite(x)) x = as_float((as_uint(x) + 0x1000u) & 0xFFFFE000u);
#endif
    STORE(DST_T, dst, i * EACH + e, x);
  }
}
