// tiled.cl - transposed matrices through local memory: dst[b, c, r] = src[b, r, c]
//
// Shapes    src: [batches, rows, cols], dst: [batches, cols, rows], contiguous
// Launch    one work-group per tile of TILE x TILE elements, tiles in row-major
//           order: global = (batches * tiles * TILE, TILE_ROWS, 1), local = (TILE, TILE_ROWS, 1)
// Macros    SRC_T      uchar|short|int|int2|float|half    one element of src, see common/move.cl
//           DST_T      uchar|short|int|int2|float|half    one element of dst
//           TILE       1..  elements along a side of a tile, a multiple of TILE_ROWS
//           TILE_ROWS  1..  rows of work-items in a work-group
// Numerics  bits are copied; float to half rounds to nearest even
#include "common/local.cl"
#include "common/move.cl"

__kernel __attribute__((reqd_work_group_size(TILE, TILE_ROWS, 1))) void transpose_tiled(
    __global const SRC_T *src, __global DST_T *dst, int rows, int cols) {
  // One extra column, so that a column of the tile covers different banks.
  LOCAL_ARRAY2(ARITH(SRC_T), tile, TILE, TILE + 1);
  const int tiles_across = (cols + TILE - 1) / TILE;
  const int tiles_down = (rows + TILE - 1) / TILE;
  const int group = get_group_id(0);
  const int batch = group / (tiles_across * tiles_down);
  const int within = group % (tiles_across * tiles_down);
  const int row = within / tiles_across * TILE;
  const int col = within % tiles_across * TILE;
  const int x = get_local_id(0);
  src += (size_t)batch * rows * cols;
  dst += (size_t)batch * rows * cols;

  for (int y = get_local_id(1); y < TILE; y += TILE_ROWS) {
    if (row + y < rows && col + x < cols) {
      tile[y][x] = LOAD(SRC_T, src, (row + y) * cols + col + x);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int y = get_local_id(1); y < TILE; y += TILE_ROWS) {
    if (col + y < cols && row + x < rows) {
      STORE(DST_T, dst, (col + y) * rows + row + x, tile[x][y]);
    }
  }
}
