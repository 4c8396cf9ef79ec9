// chain.cl - several launches as the stages of one kernel, whose work-groups wait for each other
//
// kernel/chain.cpp writes the text of such a kernel: this file, then for each different kernel of the
// stages its file, as a function, and last the kernel that calls them.
//
// The work-groups of the launch stay on the device until the end, and take turns with the work-groups of
// the stages. OpenCL does not promise that all of them run at the same time. So a group waits only a limited
// time, then it tells the others to give up; from then on nobody waits, the results are wrong, and the host
// repeats the launches one by one.
//
// Macros    CHAIN_NVIDIA  0|1  1: fences and barriers of PTX
//
// state     [33] uint, zeros before and after: groups that have arrived at a wait, groups that have ended,
//           1 if one has given up; the waits that are over (last, in a cache line of its own)
// report    [1] uint in memory of the host, which sets it to zero: 1 if a group has given up
#define CHAIN_ARRIVED 0
#define CHAIN_ENDED 1
#define CHAIN_GAVE_UP 2
#define CHAIN_OVER 32

// Offsets of arrays in local memory: those of tensor cores must be multiples of 128.
#define CHAIN_LOCAL_BYTES(bytes) (((bytes) + 127) / 128 * 128)

// mem_fence is not enough on NVIDIA: another group's stores are read stale.
#if CHAIN_NVIDIA
#define CHAIN_FENCE() asm volatile("fence.acq_rel.gpu;" ::: "memory")
static inline uint chain_read(volatile __global uint *p) {
  uint value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
#else
#define CHAIN_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
static inline uint chain_read(volatile __global uint *p) { return atomic_or(p, 0u); }
#endif

// Returns when `groups` groups have called it `calls` times, each with all its work-items, or one gives up.
static inline void chain_wait(volatile __global uint *state, volatile __global uint *report,
                              uint calls, uint groups, uint patience) {
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 0) {
    CHAIN_FENCE();
#if CHAIN_VARIANT == 0
    atomic_inc(&state[CHAIN_ARRIVED]);
    uint polls = 0;
    while (chain_read(&state[CHAIN_ARRIVED]) < calls * groups) {
#else
    if (atomic_inc(&state[CHAIN_ARRIVED]) == calls * groups - 1) atomic_xchg(&state[CHAIN_OVER], calls);
    uint polls = 0;
    while (chain_read(&state[CHAIN_OVER]) < calls) {
#endif
      if (polls++ == patience) {
        atomic_xchg(&state[CHAIN_GAVE_UP], 1u);
        *report = 1u;
      }
      if (polls % 64 == 0 && chain_read(&state[CHAIN_GAVE_UP]) != 0) break;
    }
    CHAIN_FENCE();
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

// The last group to end leaves the state as it was.
static inline void chain_end(volatile __global uint *state, volatile __global uint *report,
                             uint groups, uint patience) {
  if (get_local_id(0) == 0 && atomic_inc(&state[CHAIN_ENDED]) == groups - 1) {
    if (patience == 0) *report = 1u;  // the host tests the way of a report
    atomic_xchg(&state[CHAIN_ARRIVED], 0u);
    atomic_xchg(&state[CHAIN_ENDED], 0u);
    atomic_xchg(&state[CHAIN_GAVE_UP], 0u);
    atomic_xchg(&state[CHAIN_OVER], 0u);
  }
}

// What the launch of a stage would return. CHAIN_ITEMS_0 to 2: its work-items of a work-group; the
// parameters: one of its work-groups, a work-item of it, its work-groups along the axes, the work-group's
// local memory, and (NVIDIA) the number of the barrier that its work-items meet at.
#define CHAIN_PARAMETERS                                                                           \
  const int chain_group, const int chain_item, const int chain_groups_0, const int chain_groups_1, \
      __local uchar *chain_local, const int chain_barrier,
#define CHAIN_GROUP_ID_0 (chain_group % chain_groups_0)
#define CHAIN_GROUP_ID_1 (chain_group / chain_groups_0 % chain_groups_1)
#define CHAIN_GROUP_ID_2 (chain_group / chain_groups_0 / chain_groups_1)
#define CHAIN_LOCAL_ID_0 (chain_item % CHAIN_ITEMS_0)
#define CHAIN_LOCAL_ID_1 (chain_item / CHAIN_ITEMS_0 % CHAIN_ITEMS_1)
#define CHAIN_LOCAL_ID_2 (chain_item / CHAIN_ITEMS_0 / CHAIN_ITEMS_1)
#if CHAIN_NVIDIA
#define CHAIN_BARRIER(number, items) \
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(items) : "memory")
#else
#define CHAIN_BARRIER(number, items) barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#endif
