// pack_order.cl - weights in the order in which the lanes of a warp read them, for the kernels pack_nvidia.cl, which
//                 describes it, and pack_exact_nvidia.cl
//
// pack_one(...)              writes the 16 bytes i of dst
// EXACT                      1: floats are written as they are; 0: rounded to TF32
//
// Macros    TN          16..128        channels of a panel
//           TK          multiple of K  depth of a step
//           BLOCKS      2|4            blocks of 8 columns whose channels interleave
//           NEIGHBOURS  0|1            see there
#include "tensor_gemm/piece.cl"

#define K (32 / BYTES)

void pack_one(int i, __global const SRC_T *src, __global DST_T *dst, int depth, int group_out,
              int panels, int steps) {
  const int lane = i % 32, g = lane / 4, q = lane % 4;
  const int pair = i / 32 % (TN / 16);
  const int part = i / (2 * TN) % (TK / K);
  const int tile = i / (2 * TN * (TK / K));
  const int step = tile % steps;
  const int panel = tile / steps % panels;
  const int group = tile / steps / panels;
  ARITH(SRC_T) x[EACH];
#pragma unroll
  for (int j = 0; j < EACH; ++j) {
    // Registers 0 and 1 of two blocks; the elements of a register are neighbours.
    const int reg = j / (EACH / 4);
#if NEIGHBOURS
    const int at = part / 2 * (2 * K) + q * EACH + part % 2 * (EACH / 2) + reg % 2 * (EACH / 4);
#else
    const int at = part * K + reg % 2 * (K / 2) + q * (EACH / 4);
#endif
    const int k = step * TK + at + j % (EACH / 4);
    const int block = pair * 2 + reg / 2;
    const int channel = panel * TN + block / BLOCKS * (8 * BLOCKS) + g / 2 * (2 * BLOCKS) +
                        block % BLOCKS * 2 + g % 2;
    x[j] = 0;
    if (channel < group_out && k < depth) x[j] = WEIGHT_AT(k);
#if BYTES == 4 && !EXACT
    // Infinities and NaNs are not rounded.
    if (isfinite(x[j])) x[j] = as_float((as_uint(x[j]) + 0x1000u) & 0xFFFFE000u);
#endif
  }
  STORE_PIECE(i, x);
}
