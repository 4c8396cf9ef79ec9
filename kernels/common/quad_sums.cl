// quad_sums.cl - sums of PX pixels x OV vectors of four channels, each in its own variable: some compilers
//                for mobile GPUs keep private arrays in memory, even with constant subscripts
//
//   EACH_SUM(DECLARE_SUM)                          sums sum00, sum01, sum10, ...; sum00: pixel 0, vector 0
//   EACH_SUM(FLUSH_SUM)                            adds blocks to them, see common/block_sums.cl
//   EACH_PIXEL(M), EACH_SUM(M), PIXELS_OF(M, v)    M(p); M(p, v); M(p, v) for one vector
//   EACH_VECTOR(M)                                 M(v)
//   SUM_PARTS                                      adds the sums of PARTS work-items to those of part 0
//   STORE_SUMS(channel, first_channel)             stores the results; needs the variables pixels, first
//                                                  (pixel of sum 0), group_out, out_c; channel: that of
//                                                  vector 0, in the group that begins at first_channel
//
// Channels of a work-item: WG_C neighbouring work-items have neighbouring vectors, so vector v begins
// 4 * WG_C * v channels after the first.
//
// Macros    PX     1|2|4  pixels of a work-item
//           OV     1|2    vectors of a work-item
//           PARTS  1..16  work-items, along axis 2 of a work-group, that share sums
//           VEC_N  0|1    1: group_out and the places of results are multiples of 4
//           WG_C, WG_P  1..128  size of a work-group along axes 0 and 1
#include "common/block_sums.cl"
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"

#if PX == 1
#define EACH_PIXEL(M) M(0)
#define PIXELS_OF(M, v) M(0, v)
#elif PX == 2
#define EACH_PIXEL(M) M(0) M(1)
#define PIXELS_OF(M, v) M(0, v) M(1, v)
#else
#define EACH_PIXEL(M) M(0) M(1) M(2) M(3)
#define PIXELS_OF(M, v) M(0, v) M(1, v) M(2, v) M(3, v)
#endif
#if OV == 1
#define EACH_VECTOR(M) M(0)
#define EACH_SUM(M) PIXELS_OF(M, 0)
#else
#define EACH_VECTOR(M) M(0) M(1)
#define EACH_SUM(M) PIXELS_OF(M, 0) PIXELS_OF(M, 1)
#endif

#define DECLARE_SUM(p, v) DECLARE_TOTAL(TOTAL4_T, SUM4_T, sum##p##v)
#define FLUSH_SUM(p, v) FLUSH_TOTAL(convert_float4, sum##p##v)

#if PARTS > 1
// Sums of all parts but the first; each has a row.
#define STAGED(p, v, part) \
  staged[((p) * OV + (v)) * (PARTS - 1) + (part) - 1][get_local_id(1) * WG_C + get_local_id(0)]
#define STAGE_SUM(p, v) STAGED(p, v, get_local_id(2)) = sum##p##v;
#define ADD_STAGED(p, v) \
  for (int part_ = 1; part_ < PARTS; ++part_) sum##p##v += STAGED(p, v, part_);
#define SUM_PARTS                                                     \
  LOCAL_ARRAY2(TOTAL4_T, staged, PX * OV * (PARTS - 1), WG_C * WG_P); \
  if (get_local_id(2) > 0) {                                          \
    EACH_SUM(STAGE_SUM)                                               \
  }                                                                   \
  barrier(CLK_LOCAL_MEM_FENCE);                                       \
  if (get_local_id(2) == 0) {                                         \
    EACH_SUM(ADD_STAGED)                                              \
  }
#define STORES_SUMS (get_local_id(2) == 0)
#else
#define SUM_PARTS
#define STORES_SUMS 1
#endif

#if VEC_N
#define STORE_SUM(p, v)                                                       \
  if (first + p < pixels) {                                                   \
    const int at_ = RESULT_AT(first + p, o_, out_c);                          \
    STORE4_ALIGNED(DST_T, dst, at_, FINISH_SUM4_ALIGNED(sum##p##v, c_, at_)); \
  }
#define STORE_VECTOR(v)                                      \
  if (channel_ + 4 * WG_C * v < group_out) {                 \
    const int o_ = first_channel_ + channel_ + 4 * WG_C * v; \
    const CHANNEL4_T c_ = CHANNEL4_AT(o_);                   \
    PIXELS_OF(STORE_SUM, v)                                  \
  }
#else
#define STORE_LANE(s, j)                                                    \
  if (j < left_) {                                                          \
    STORE(DST_T, dst, at_ + j, FINISH_SUM(s, CHANNEL_AT(o_ + j), at_ + j)); \
  }
#define STORE_SUM(p, v)                              \
  if (first + p < pixels) {                          \
    const int at_ = RESULT_AT(first + p, o_, out_c); \
    STORE_LANE(sum##p##v.s0, 0)                      \
    STORE_LANE(sum##p##v.s1, 1)                      \
    STORE_LANE(sum##p##v.s2, 2)                      \
    STORE_LANE(sum##p##v.s3, 3)                      \
  }
#define STORE_VECTOR(v)                                      \
  {                                                          \
    const int o_ = first_channel_ + channel_ + 4 * WG_C * v; \
    const int left_ = group_out - channel_ - 4 * WG_C * v;   \
    PIXELS_OF(STORE_SUM, v)                                  \
  }
#endif
#define STORE_SUMS(channel, first_channel)                            \
  if (STORES_SUMS) {                                                  \
    const int channel_ = (channel), first_channel_ = (first_channel); \
    EACH_VECTOR(STORE_VECTOR)                                         \
  }
