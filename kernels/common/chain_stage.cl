// chain_stage.cl - turns the kernels of a file into functions: the stages of a chain (common/chain.cl), or the
//                  members of a bundle (kernel/bundle.hpp)
//
// kernel/bodies.cpp writes this before the files of the functions, and undefines it before the kernel that calls
// them. In a function, get_group_id and the others return what they would in a launch. CHAIN_ITEMS_0 to 2 are the
// work-items of its work-group, defined for each stage.
//
// Parameters of each function, before those of the kernel: one of its work-groups, a work-item of it, its
// work-groups along two axes, the work-group's local memory, the number of its barrier; and, of a chain, its state
// and what it waits for (chain_await), 0: nothing. CHAIN_WAITS 0|1: 1: OPERANDS_READY waits for that.
#define CHAIN_PARAMETERS                                                                           \
  const int chain_group, const int chain_item, const int chain_groups_0, const int chain_groups_1, \
      __local uchar *chain_local, const int chain_barrier, volatile __global uint *chain_state,    \
      const uint chain_awaited, const uint chain_patience,

#if CHAIN_WAITS
#define OPERANDS_READY() \
  if (chain_awaited != 0) chain_await(chain_state, chain_awaited, chain_patience)
#define KEEPS_RESULTS() (!chain_gave_up(chain_state))
#else
#define OPERANDS_READY()
#define KEEPS_RESULTS() true
#endif

#define __kernel CHAIN_FUNCTION
#define reqd_work_group_size(x, y, z) unused
#define vec_type_hint(type) unused

#define CHAIN_GROUP_ID_0 (chain_group % chain_groups_0)
#define CHAIN_GROUP_ID_1 (chain_group / chain_groups_0 % chain_groups_1)
#define CHAIN_GROUP_ID_2 (chain_group / chain_groups_0 / chain_groups_1)
#define CHAIN_LOCAL_ID_0 (chain_item % CHAIN_ITEMS_0)
#define CHAIN_LOCAL_ID_1 (chain_item / CHAIN_ITEMS_0 % CHAIN_ITEMS_1)
#define CHAIN_LOCAL_ID_2 (chain_item / CHAIN_ITEMS_0 / CHAIN_ITEMS_1)

#define get_group_id(axis) CHAIN_GROUP_ID_##axis
#define get_local_id(axis) CHAIN_LOCAL_ID_##axis
#define get_num_groups(axis) chain_groups_##axis
#define get_global_id(axis) (CHAIN_GROUP_ID_##axis * CHAIN_ITEMS_##axis + CHAIN_LOCAL_ID_##axis)
#define get_global_size(axis) (chain_groups_##axis * CHAIN_ITEMS_##axis)

// As in common/local.cl: parts of the stage's local memory, which tensor cores need at multiples of 128 bytes.
#define CHAIN_LOCAL_BYTES(bytes) (((bytes) + 127) / 128 * 128)
#define CHAIN_LOCAL(T, n)                             \
  (chain_local += CHAIN_LOCAL_BYTES((n) * sizeof(T)), \
   chain_local - CHAIN_LOCAL_BYTES((n) * sizeof(T)))
#define LOCAL_ARRAY(T, name, n) __local T *const name = (__local T *)CHAIN_LOCAL(T, n)
#define LOCAL_ARRAY2(T, name, n, m) \
  __local T(*const name)[m] = (__local T(*)[m])CHAIN_LOCAL(T, (n) * (m))
#define LOCAL_ARRAY3(T, name, n, m, k) \
  __local T(*const name)[m][k] = (__local T(*)[m][k])CHAIN_LOCAL(T, (n) * (m) * (k))
#define LOCAL_LINES LOCAL_ARRAY
