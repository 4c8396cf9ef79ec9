// pack_point_nvidia.cl - weights of a 1x1 convolution as the right operands of tensor cores (common/mma.cl), in the
//                        order in which the lanes of a warp read them in fused_f16_nvidia.cl
//
// Shapes    src: [out_c, depth]; dst: [ceil(out_c / TN), ceil(depth / 32), 2, TN / 16, 32 lanes, 8], zero past
//           the last channel or depth. The 8 halves of a lane are its registers of two blocks of 8
//           columns: lane 4 * g + q has depths q * 8 + step * 4 + 0 .. 3 of 32, where step is the
//           third axis. Column g of a block is channel g / 2 * (2 * BLOCKS) + b * 2 + g % 2 of
//           BLOCKS * 8, b the number of the block among BLOCKS
// Launch    one work-item per element of dst: global = (elements, rounded up), local = (64)
// Macros    TN      16..64      channels of a panel, a multiple of 8 * BLOCKS
//           BLOCKS  2|4         blocks of 8 columns whose channels interleave
//           SRC_T   float|half  element type of src
// Numerics  float to half rounds to nearest even
#include "common/types.cl"

__kernel void separable_conv2d_pack_point(__global const SRC_T *src, __global half *dst,
                                          int elements, int depth, int out_c, int steps) {
  const int i = get_global_id(0);
  if (i >= elements) return;
  const int element = i % 8, lane = i / 8 % 32, g = lane / 4, q = lane % 4;
  const int pair = i / 256 % (TN / 16), part = i / (16 * TN) % 2;
  const int step = i / (32 * TN) % steps, panel = i / (32 * TN) / steps;
  const int block = pair * 2 + element / 4;
  const int k = step * 32 + q * 8 + part * 4 + element % 4;
  const int channel = panel * TN + block / BLOCKS * (8 * BLOCKS) + g / 2 * (2 * BLOCKS) +
                      block % BLOCKS * 2 + g % 2;
  float x = 0.0f;
  if (channel < out_c && k < depth) x = LOAD(SRC_T, src, channel * depth + k);
  STORE(half, dst, i, x);
}
