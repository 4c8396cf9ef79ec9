// sort.cl - rows in the order of their experts, divided into tiles of one expert each
//
// Shapes    indices: [rows / each]; order: [rows]; tiles: [count, 3]: expert, first position in order,
//           number of rows, at most HEIGHT; all 0 for tiles that are not needed. Rows with an index outside
//           [0, EXPERTS) come last, as those of expert EXPERTS.
// Launch    one work-group of WG work-items
// Macros    INDEX_T  int|long|short  element type of indices
//           EXPERTS  1..             experts
//           HEIGHT   1..             rows of a tile
//           WG       1..             work-items
// Numerics  exact; the order of rows with the same expert may differ from one inference to the next, and
//           their results do not depend on it
#include "common/local.cl"
#include "common/types.cl"

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void expert_matmul_sort(
    __global const INDEX_T *indices, __global int *order, __global int *tiles, int rows, int each,
    int count) {
  LOCAL_ARRAY(int, next, EXPERTS + 1);
  const int item = get_local_id(0);
  for (int e = item; e <= EXPERTS; e += WG) next[e] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = item; r < rows; r += WG) {
    const ARITH(INDEX_T) e = LOAD(INDEX_T, indices, r / each);
    atomic_inc(&next[e >= 0 && e < EXPERTS ? (int)e : EXPERTS]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    int tile = 0, first = 0;
    for (int e = 0; e <= EXPERTS; ++e) {
      const int end = first + next[e];
      next[e] = first;
      for (; first < end; first = min(first + HEIGHT, end)) {
        tiles[3 * tile] = e;
        tiles[3 * tile + 1] = first;
        tiles[3 * tile + 2] = min(HEIGHT, end - first);
        ++tile;
      }
    }
    for (int i = 3 * tile; i < 3 * count; ++i) tiles[i] = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = item; r < rows; r += WG) {
    const ARITH(INDEX_T) e = LOAD(INDEX_T, indices, r / each);
    order[atomic_inc(&next[e >= 0 && e < EXPERTS ? (int)e : EXPERTS])] = r;
  }
}
