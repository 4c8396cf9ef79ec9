// mask_tiles.cl - what a mask does to each tile of scores, so that attention skips what it hides and reads
//                 it only where it must
//
// Shapes    mask: strides mb, mn, mt, ms along batches, heads, queries, keys; tiles: [batches, key_heads,
//           row_tiles, key_tiles], the first two only where the mask differs along batches or heads.
//           Rows are those of attention_nvidia.cl: queries, with the heads that share a head of keys
// Launch    a work-group per element of tiles: global = (key_tiles * KEYS, row_tiles, groups), local =
//           (KEYS, 1, 1); groups = batches * key_heads as tiles has them, mask_heads = key_heads as it has them
// Macros    ROWS  64         rows of a tile
//           KEYS  64         keys of a tile
//           WIDE  0|1        1: ms is 1, and 8 divides keys and the other strides
//           MASK_T  float|half  element type of the mask
// Numerics  0: all elements are below -1e30; 1: all are 0; 2: neither
#include "common/local.cl"
#include "common/types.cl"

__kernel __attribute__((reqd_work_group_size(KEYS, 1, 1))) void composite_mask_tiles(
    __global const MASK_T *mask, __global uchar *tiles, int queries, int keys, int share,
    int mask_heads, int mb, int mn, int mt, int ms) {
  LOCAL_ARRAY(uint, found, 1);
  const int item = get_local_id(0);
  const int batch = (int)get_group_id(2) / mask_heads, head = (int)get_group_id(2) % mask_heads;
  if (item == 0) found[0] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const int first = (int)get_group_id(1) * ROWS / share;
  const int last = min(((int)get_group_id(1) * ROWS + ROWS - 1) / share, queries - 1);
  const int seen_heads = mn == 0 ? 1 : share;
  uint bits = 0;  // 1: something is seen; 2: something is not 0
#if WIDE
  // Eight items read a row.
  const int key = get_group_id(0) * KEYS + item % 8 * 8, down = item / 8;
#else
  const int key = get_group_id(0) * KEYS + item, down = 0;
#endif
  if (key < keys) {
    for (int n = 0; n < seen_heads; ++n) {
      const int from = batch * mb + (head * share + n) * mn + key * ms;
#pragma unroll 8
      for (int t = first + down; t <= last; t += WIDE ? KEYS / 8 : 1) {
#if WIDE
        const float8 given = LOAD8_ALIGNED(MASK_T, mask, from + t * mt);
        bits |= (all(given < -1e30f) ? 0 : 1) | (all(given == 0.0f) ? 0 : 2);
#else
        const float given = LOAD(MASK_T, mask, from + t * mt);
        bits |= (given < -1e30f ? 0 : 1) | (given == 0.0f ? 0 : 2);
#endif
      }
    }
  }
  if (bits != 0) atomic_or(&found[0], bits);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    const int at = ((int)get_group_id(2) * (int)get_num_groups(1) + (int)get_group_id(1)) *
                       (int)get_num_groups(0) +
                   (int)get_group_id(0);
    tiles[at] = found[0] == 3 ? 2 : found[0] == 1;
  }
}
