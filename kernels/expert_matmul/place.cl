// place.cl - the rows of the results of experts, in tiles of rows with the same expert
//
// Row r of dst belongs to index r / each; it is the product of row X_ROW(r) of x, as `share` neighbouring
// indices have the same rows of x.
//
// PLACE_PARAMS  parameters that say which rows a tile has
// EXPERT_OF(t)  expert of tile t; outside [0, experts): its rows are 0
// ROWS_OF(t)    number of rows of tile t, 0 if it is not needed
// ROW_OF(t, i)  row i of tile t
//
// Macros    SORTED   0|1             1: tiles of rows that expert_matmul/sort.cl has sorted; 0: tile t is row t
//           INDEX_T  int|long|short  element type of indices (any if SORTED)
#include "common/types.cl"

#define X_ROW(r) ((r) / each / share * each + (r) % each)
#if SORTED
#define PLACE_PARAMS __global const int *order, __global const int *tiles,
#define EXPERT_OF(t) tiles[3 * (t)]
#define ROWS_OF(t) tiles[3 * (t) + 2]
#define ROW_OF(t, i) order[tiles[3 * (t) + 1] + (i)]
#else
#define PLACE_PARAMS __global const INDEX_T *indices,
#define EXPERT_OF(t) expert_at(indices, (t) / each)
static inline int expert_at(__global const INDEX_T *indices, int at) {
  const ARITH(INDEX_T) e = LOAD(INDEX_T, indices, at);
  return e >= 0 && e <= INT_MAX ? (int)e : -1;
}
#define ROWS_OF(t) 1
#define ROW_OF(t, i) (t)
#endif
