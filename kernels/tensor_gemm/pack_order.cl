// pack_order.cl - weights in the order in which the lanes of a warp read them, for the kernels pack_nvidia.cl, which
//                 describes it, and pack_float_pairs_nvidia.cl
//
// pack_one(...)              writes the 16 bytes i of dst
// PAIRS                      1: floats are written as pairs; 0: rounded to TF32
//
// Macros    TN          16..128        channels of a panel
//           TK          multiple of K  depth of a step
//           BLOCKS      2|4            blocks of 8 columns whose channels interleave
//           NEIGHBOURS  0|1            see there
#include "tensor_gemm/piece.cl"

#define K (32 / BYTES)

#if PAIRS
// The bits of a bfloat16 number, the upper ones of a float.
uint to_bfloat(float x) {
  const uint bits = as_uint(x);
  if (!isfinite(x)) return isnan(x) ? 0x7FC0u : bits >> 16;
  return (bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16;
}

uint rest_of(float x, uint bfloat) {
  const float value = as_float(bfloat << 16);
  return isfinite(value) ? to_bfloat(x - value) : 0;
}

// Makes two floats that are multiplied together first both of their bfloat16 numbers, then both rests.
void pair_up(float *low, float *high) {
  const uint first = to_bfloat(*low), second = to_bfloat(*high);
  const uint rests = rest_of(*low, first) | rest_of(*high, second) << 16;
  *low = as_float(first | second << 16);
  *high = as_float(rests);
}
#endif

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
#if BYTES == 4 && !PAIRS
    // Infinities and NaNs are not rounded.
    if (isfinite(x[j])) x[j] = as_float((as_uint(x[j]) + 0x1000u) & 0xFFFFE000u);
#endif
  }
#if PAIRS
#pragma unroll
  for (int j = 0; j < EACH; j += 2) pair_up(&x[j], &x[j + 1]);
#endif
  STORE_PIECE(i, x);
}
