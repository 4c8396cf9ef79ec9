// chain.cl - probes whether work-groups that wait for each other all run, and see each other's stores
//
// Shapes    a, result: [elements + 1] uint, elements = work-items of the launch, a[i] = i
// Launch    global = (groups * ITEMS, 1, 1), local = (ITEMS, 1, 1)
// Macros    ITEMS  1..1024  work-items of a work-group
//           and those of common/chain.cl
// Numerics  exact, modulo 2^32
//
// In each of STAGES stages, an element gets a value computed of one that another group has written in the
// stage before. The last element of result: 0, or 1 if a group gave up.
#include "common/chain.cl"

#define STAGES 64
#define PATIENCE 50000u

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void device_chain(
    volatile __global uint *state, __global uint *a, __global uint *result, int groups) {
  const uint elements = groups * ITEMS, i = get_global_id(0);
  for (uint stage = 0; stage < STAGES; ++stage) {
    __global uint *from = stage % 2 == 0 ? a : result;
    __global uint *to = stage % 2 == 0 ? result : a;
    to[i] = from[(i + ITEMS + 7) % elements] * 3 + stage;
    chain_wait(state, stage + 1, groups, PATIENCE);
  }
  result[i] = a[i];
  if (i == 0) result[elements] = state[CHAIN_GAVE_UP];
  chain_end(state, groups);
}
