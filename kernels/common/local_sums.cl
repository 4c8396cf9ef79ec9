// local_sums.cl - sums of numbers that the n work-items of a work-group have written to local memory, one each
//
// LOCAL_SUM(sums, item, n)          sums[0] is the sum of all; n is a power of two
// LOCAL_RUNNING_SUMS(sums, item, n)  sums[i] is the sum of sums[0] to sums[i]
//
// All work-items have to get there. They begin and end with a barrier.
#define LOCAL_SUM(sums, item, n)                                    \
  do {                                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                                   \
    for (int reach_ = (n) / 2; reach_ > 0; reach_ /= 2) {           \
      if ((item) < reach_) (sums)[item] += (sums)[(item) + reach_]; \
      barrier(CLK_LOCAL_MEM_FENCE);                                 \
    }                                                               \
  } while (0)

#define LOCAL_RUNNING_SUMS(sums, item, n)                               \
  do {                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                       \
    for (int reach_ = 1; reach_ < (n); reach_ *= 2) {                   \
      const int left_ = (item) >= reach_ ? (sums)[(item) - reach_] : 0; \
      barrier(CLK_LOCAL_MEM_FENCE);                                     \
      (sums)[item] += left_;                                            \
      barrier(CLK_LOCAL_MEM_FENCE);                                     \
    }                                                                   \
  } while (0)
