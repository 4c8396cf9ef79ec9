// pack_nibbles.cl - dst[n, i]: the lower 4 bits of eight neighbours of a row, the first one lowest
//
// Shapes    src: [cols, depth], -8 to 7; dst: [cols, words], words = ceil(depth / 8); zeros beyond depth
// Launch    one work-item per word: global = (cols * words rounded up, 1, 1), any local
// Macros    none
// Numerics  exact

__kernel void fully_connected_pack_nibbles(__global const char *src, __global uint *dst, int cols,
                                           int depth, int words) {
  const int at = get_global_id(0);
  if (at >= cols * words) return;
  const int first = at % words * 8;
  const int count = min(8, depth - first);
  src += (size_t)(at / words) * depth + first;
  uint word = 0;
  for (int i = 0; i < count; ++i) word |= ((uint)src[i] & 15u) << (4 * i);
  dst[at] = word;
}
