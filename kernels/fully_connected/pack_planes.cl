// pack_planes.cl - dst[n, u, i]: the lower 4 bits of elements 32 * u + i (low) and 32 * u + 16 + i of row n
//
// Shapes    src: [cols, depth], -8 to 7; dst: [cols, depth / 32, 16]; depth is a multiple of 32
// Launch    one work-item per byte: global = (count rounded up, 1, 1), any local; count = cols * depth / 2
// Macros    none
// Numerics  exact

__kernel void fully_connected_pack_planes(__global const char *src, __global char *dst, int count) {
  const int at = get_global_id(0);
  if (at >= count) return;
  src += (size_t)(at / 16) * 32 + at % 16;
  dst[at] = (char)((src[0] & 15) | (src[16] << 4));
}
