// pack_warps_nvidia.cl - weights in the order in which the lanes of a warp read them as left operands of
//                        tensor-core products (common/mma.cl)
//
// Shapes    src: [cols, depth], depth a multiple of 64, integers of 4 bits -8 to 7; dst: [ceil(cols / 16),
//           depth / 64, BITS / 4, 32 lanes, 4] words, zero past the last column. A step of 64 elements
//           makes four products j of 16; register r of lane 4 g + q has the neighbours 32 (j / 2) + 8 q +
//           4 (j % 2) + 2 (r / 2) and the next of column g, with odd r of column g + apart. The 16 columns
//           are two runs of 8; apart is a multiple of 8, and 2 * apart columns are apart / 8 such pairs. A
//           word has the registers of one product: the one register of halves; two of bytes, 128 above
//           the integers; all four of 4 bits, 8 above the integers, register r at 4 r, its neighbour 16
//           bits above.
//           With DIGITS a step makes two products j of 32, whose register r of lane 4 g + q has the elements
//           16 q + 8 j + 4 (r / 2) and the three next ones, of the same columns: words of the first product
//           and then the second one, or with 4 bits one word for both, of which each byte has the first
//           product's element in its upper half
// Launch    one work-item per word of dst: global = (words, rounded up), any local
// Macros    BITS   4|8|16     of a weight
//           DIGITS 0|3        3: left operands of products of int8; BITS is 4 or 8
//           SRC_T  char|half  element type of src: half with BITS 16
// Numerics  exact
#include "common/types.cl"

__kernel void fully_connected_pack_warps(__global const SRC_T *src, __global uint *dst, int words,
                                         int cols, int depth, int apart) {
  const int i = get_global_id(0);
  if (i >= words) return;
  const int lane = i / 4 % 32, g = lane / 4, q = lane % 4;
  const int place = i / 128 % (BITS / 4) * 4 + i % 4;  // among the words of a lane in a step
  const int step = i / (32 * BITS) % (depth / 64);
  const int pair_of_runs = i / (32 * BITS) / (depth / 64), pairs = apart / 8;
  const int n0 = pair_of_runs / pairs * (2 * apart) + pair_of_runs % pairs * 8;
  const int j = place / (BITS / 4), part = place % (BITS / 4);
  const int k = step * 64 + j / 2 * 32 + q * 8 + j % 2 * 4;
  uint word = 0;
#if DIGITS
  const int r = place % 4, column = n0 + g + r % 2 * apart;
#pragma unroll
  for (int e = 0; e < 32 / BITS; ++e) {
    const int product = BITS == 8 ? place / 4 : e / 4;
    const int at = step * 64 + q * 16 + product * 8 + r / 2 * 4 + e % 4;
    const int v = column < cols ? src[(size_t)column * depth + at] : 0;
    word |= (uint)(v & ((1 << BITS) - 1)) << (BITS == 8 ? 8 * e : 8 * (e % 4) + 4 - 4 * product);
  }
#else
#pragma unroll
  for (int e = 0; e < 32 / BITS; ++e) {  // the elements of a word
    const int pair = part * (16 / BITS) + e / 2, r = BITS == 16 ? part : pair;
    const int n = n0 + g + r % 2 * apart, at = k + r / 2 * 2 + e % 2;
#if BITS == 16
    const uint bits = n < cols ? ((__global const ushort *)src)[(size_t)n * depth + at] : 0;
    word |= bits << (16 * e);
#elif BITS == 8
    const int v = n < cols ? src[(size_t)n * depth + at] : 0;
    word |= (uint)(v + 128) << (8 * e);
#else
    const int v = n < cols ? src[(size_t)n * depth + at] : 0;
    word |= (uint)(v + 8) << (4 * r + 16 * (e % 2));
#endif
  }
#endif
  dst[i] = word;
}
