// chain.cl - several launches as the stages of one kernel, whose work-groups wait for each other
//
// kernel/chain.cpp writes the text of such a kernel: this file, then the file of each different kernel among
// the stages, as a function, and last the kernel that calls them.
//
// The work-groups of the launch stay on the device until the end, and take turns with the work-groups of
// the stages. OpenCL does not promise that all of them run at the same time. So a group waits only a limited
// time, then it tells the others to give up; from then on nobody waits, the results are wrong, and the host
// repeats the launches one by one. Sorensen, Evrard and Donaldson, "Portable inter-workgroup barrier
// synchronisation for GPUs" (OOPSLA 2016), treats such barriers.
//
// Macros    CHAIN_NVIDIA  0|1  1: fences and barriers of PTX
//
// state     [3] uint: groups that have arrived at a wait, groups that have ended, 1 if one has given up; zeros
//           before. The last group to end sets the first two to zero again
#define CHAIN_ARRIVED 0
#define CHAIN_ENDED 1
#define CHAIN_GAVE_UP 2

// mem_fence is not enough on NVIDIA: another group's stores are read stale. There one work-item releases what the
// barrier of its group has made visible to it, and acquires what the others have released; a barrier that
// also fences global memory would wait for each work-item's stores alone.
#if CHAIN_NVIDIA
#define CHAIN_FENCES CLK_LOCAL_MEM_FENCE
static inline void chain_arrive(volatile __global uint *arrived) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
}
static inline uint chain_read(volatile __global uint *p) {
  uint value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
// Whether a group has given up, before what this one has awaited: the value is not waited for until it is used.
static inline bool chain_gave_up(volatile __global uint *state) {
  uint value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(state + CHAIN_GAVE_UP));
  return value != 0;
}
// The work-group and its work-item, read again in each place, so that nothing computed of them is kept in registers
// from one stage to the next: the compiler would do so for all stages of a loop.
static inline int chain_group_now(void) {
  int value;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(value));
  return value;
}
static inline int chain_item_now(void) {
  int value;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(value));
  return value;
}
// Work-items of a part of the work-group meet at the barrier with this number, 1..15.
#define CHAIN_BARRIER(number, items) \
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(items) : "memory")
#else
#define CHAIN_FENCES (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
static inline void chain_arrive(volatile __global uint *arrived) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  atomic_inc(arrived);
}
static inline uint chain_read(volatile __global uint *p) {
  const uint value = atomic_or(p, 0u);
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  return value;
}
static inline bool chain_gave_up(volatile __global uint *state) {
  return chain_read(&state[CHAIN_GAVE_UP]) != 0;
}
#define CHAIN_BARRIER(number, items) barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#endif

// Tells the others that this group has finished what it did until here. All its work-items call it.
static inline void chain_tell(volatile __global uint *state) {
  barrier(CHAIN_FENCES);
  if (get_local_id(0) == 0) chain_arrive(&state[CHAIN_ARRIVED]);
}

// Returns when groups have told so `awaited` times, all together, or when one has looked `patience` times in vain.
// All work-items of the group call it, on NVIDIA perhaps in different places.
static inline void chain_await(volatile __global uint *state, uint awaited, uint patience) {
  if (get_local_id(0) == 0) {
    uint looks = 0;
    while (chain_read(&state[CHAIN_ARRIVED]) < awaited) {
      if (looks++ == patience) atomic_xchg(&state[CHAIN_GAVE_UP], 1u);
      if (looks % 64 == 0 && chain_read(&state[CHAIN_GAVE_UP]) != 0) break;
    }
  }
  barrier(CHAIN_FENCES);
}

// Returns when `groups` groups have called it `calls` times.
static inline void chain_wait(volatile __global uint *state, uint calls, uint groups,
                              uint patience) {
  chain_tell(state);
  chain_await(state, calls * groups, patience);
}

static inline void chain_end(volatile __global uint *state, uint groups) {
  if (get_local_id(0) == 0 && atomic_inc(&state[CHAIN_ENDED]) == groups - 1) {
    atomic_xchg(&state[CHAIN_ARRIVED], 0u);
    atomic_xchg(&state[CHAIN_ENDED], 0u);
  }
}
