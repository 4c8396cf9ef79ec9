// held_rows.cl - which rows of an input have changed since the network was last computed from them, and which blocks of
// the network's tensors depend on these rows
//
// held_rows_renew: changed[first + r] = state[0] == 0 or any |src[r, i] - held[r, i]| > tolerance; then held[r] = src[r]
// held_rows_blocks: flags[b] = any changed[r] with r in an interval of block b; state[0] = 1
//
// Shapes    src, held: [rows, n], contiguous; changed: [all rows]; flags: [blocks]
//           table: [blocks, 1 + 2 * inputs]: the weight of a block, then first and end of an interval for each input
//           state: [4]: whether the blocks are those of held; inferences; weights of the blocks that they have
//           computed, and of all blocks
// Launch    held_rows_renew: global = (rows * WG, 1, 1), local = (WG, 1, 1): a work-group for a row
//           held_rows_blocks: global = local = (WG, 1, 1), after all launches of the other
// Macros    WG          1..256    work-items of a work-group
//           SRC_T       float|half|int|long|short|char|uchar    element type of src and held
//           INTEGERS    0|1       1: of integers, whose tolerance is a number of steps
//           TOLERANCE   literal, 0 or more    the largest difference that is no change
// Numerics  differences in float, or exact in integers; a NaN, and an infinity, always is a change
#include "common/local.cl"
#include "common/types.cl"

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void held_rows_renew(
    __global const SRC_T *src, __global const long *state, __global SRC_T *held,
    __global int *changed, int n, int first) {
  const int row = get_group_id(0), item = get_local_id(0);
  LOCAL_ARRAY(int, any, 1);
  if (item == 0) any[0] = state[0] == 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  src += (size_t)row * n;
  held += (size_t)row * n;
  int found = 0;
  for (int i = item; i < n; i += WG) {
#if INTEGERS
    found |= abs_diff(LOAD(SRC_T, src, i), LOAD(SRC_T, held, i)) > (ulong)TOLERANCE;
#else
    found |= !(fabs(LOAD(SRC_T, src, i) - LOAD(SRC_T, held, i)) <= TOLERANCE);
#endif
  }
  if (found) atomic_or(&any[0], 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (any[0]) {
    for (int i = item; i < n; i += WG) STORE(SRC_T, held, i, LOAD(SRC_T, src, i));
  }
  if (item == 0) changed[first + row] = any[0];
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void held_rows_blocks(
    __global const int *changed, __global const int *table, __global long *state,
    __global int *flags, int blocks, int inputs) {
  const int item = get_local_id(0);
  LOCAL_ARRAY(int, weights, 2);  // of computed blocks, of all
  if (item == 0) weights[0] = weights[1] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  int computed = 0, all = 0;
  for (int b = item; b < blocks; b += WG) {
    __global const int *block = table + b * (1 + 2 * inputs);
    int found = 0;
    for (int k = 0; k < inputs; ++k) {
      for (int r = block[1 + 2 * k]; r < block[2 + 2 * k]; ++r) found |= changed[r];
    }
    flags[b] = found;
    computed += found ? block[0] : 0;
    all += block[0];
  }
  atomic_add(&weights[0], computed);
  atomic_add(&weights[1], all);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item != 0) return;
  state[0] = 1;
  state[1] += 1;
  state[2] += weights[0];
  state[3] += weights[1];
}
