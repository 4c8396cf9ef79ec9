// by_floats.cl - for kernels that include common/epilogue.cl before: requantised sums of 8 bits, and their quantised
//                sums with a residual, computed as floats. Where a float is so near to a half that its error may
//                decide how it is rounded, the integers of TFLite's reference kernels decide, so results are equal in
//                every bit
//
// CHANNEL4_ALIGNED_AT(o)                   CHANNEL4_AT(o) of common/epilogue.cl; o is a multiple of 4
// REAL_CHANNEL4_T, REAL_CHANNEL4(c)        what these floats need of c, a CHANNEL4_T
// BY_FLOATS4(sum, c, real, r, off)         FINISH_SUM4 with the elements r of the residual, if there is one, unless
//                                          IS_NEAR(*off); real: REAL_CHANNEL4(c); off: float *
// BY_INTEGERS4(sum, c, r)                  the same in any case, in many more steps
// FINISH_BY_FLOATS4(sum, c, real, r)       the first, or the second where it must be
//
// Only with clgpu::ops::may_end_by_floats. RESIDUAL_PARAM gets the members of clgpu::ops::RealPair at its end.
//
// The two roundings of REQUANTIZE with a shift to the right, by n, are one of the exact number moved away from zero by
// 2^-(n + 1). Errors, in units of the last place of the result: a sum and its scale are rounded to floats, by 2^-24 of at
// most 256 each, and their product by 2^-17, below 2^-14 together. With a residual, whose factors are at most 2: the
// factors, by 2^-24 of 510 and 256, the start, by 2^-24 of 384, their sums, by 2^-15 and 2^-17, and the roundings of the
// common scale, which are 2^-18 of a unit at most, below 2^-13 together.
//
// Macros    BY_FLOATS if QUANTIZED == 1  0|1  1: there are these
//           and those of common/epilogue.cl
// Numerics  as FINISH_SUM4, in every bit
#if BY_FLOATS
#define CHANNEL4_ALIGNED_AT(o) channel4_aligned_at(channels, channel_pitch, o)
#define REAL_CHANNEL4_T real_channel4_t
#define REAL_CHANNEL4(c) real_channel4(c)
#define QUANTIZED_PAIR_REALS float real_a, float real_b, float real_start
#define REAL_ROUNDER 12582912.0f  // 1.5 * 2^23: a float plus this has no fraction
#define IS_NEAR(off) ((off) > 0.5f - 0x1p-14f)

static inline channel4_t channel4_aligned_at(__global const int *channels, int pitch, int o) {
  channel4_t c;
  c.start = *(__global const int4 *)(channels + o);
  c.multiplier = *(__global const int4 *)(channels + pitch + o);
  c.shift = *(__global const int4 *)(channels + 2 * pitch + o);
  return c;
}

typedef struct {
  float4 scale, away;
} real_channel4_t;
static inline real_channel4_t real_channel4(channel4_t c) {
  real_channel4_t real;
  real.scale = convert_float4(c.multiplier) * as_float4((c.shift + (127 - 31)) << 23);
  real.away = as_float4((c.shift + (127 - 1)) << 23);
  return real;
}

#if RESIDUAL
#undef RESIDUAL_PARAM
#define RESIDUAL_PARAM \
  __global const RESIDUAL_T *residual, QUANTIZED_PAIR_PARAMS, QUANTIZED_PAIR_REALS,
#define REAL_PARAMS int4 added, int pair_low, int pair_high, QUANTIZED_PAIR_REALS,
#define REAL_ARGS(r) r, pair_low, pair_high, real_a, real_b, real_start,
#else
#define REAL_PARAMS
#define REAL_ARGS(r)
#endif
#define BY_FLOATS4(sum, c, real, r, off) \
  by_floats4(sum, c, real, REAL_ARGS(r) dst_zero, dst_low, dst_high, off)
#define BY_INTEGERS4(sum, c, r) BEHIND_SUM(int4, CHANNEL_RESULT4(sum, c), r)

// The farthest of four numbers from what they are rounded to.
static inline float farthest4(float4 y, float4 whole) {
  const float4 apart = fabs(y - whole);
  return fmax(fmax(apart.s0, apart.s1), fmax(apart.s2, apart.s3));
}
static inline int4 by_floats4(int4 sum, channel4_t c, real_channel4_t real,
                              REAL_PARAMS int dst_zero, int dst_low, int dst_high, float *off) {
  const float4 x = convert_float4(sum + c.start);
  float4 y = clamp(fma(x, real.scale, copysign(real.away, x)), (float)(dst_low - dst_zero),
                   (float)(dst_high - dst_zero));
  float4 shifted = y + REAL_ROUNDER;
  *off = farthest4(y, shifted - REAL_ROUNDER);
#if RESIDUAL
  y = clamp(fma(shifted - REAL_ROUNDER, (float4)(real_a),
                fma(convert_float4(added), (float4)(real_b), (float4)(real_start))),
            (float)pair_low, (float)pair_high);
  shifted = y + REAL_ROUNDER;
  *off = fmax(*off, farthest4(y, shifted - REAL_ROUNDER) + 0x1p-14f);
  return as_int4(shifted) - as_int(REAL_ROUNDER);
#else
  return as_int4(shifted) - (as_int(REAL_ROUNDER) - dst_zero);
#endif
}

#if RESIDUAL
#define FINISH_BY_FLOATS4(sum, c, real, r)                                                         \
  finish_by_floats4(sum, c, real, r, pair_left, pair_a_zero, pair_a_multiplier, pair_a_shift,      \
                    pair_b_zero, pair_b_multiplier, pair_b_shift, pair_multiplier, pair_shift,     \
                    pair_zero, pair_low, pair_high, real_a, real_b, real_start, dst_zero, dst_low, \
                    dst_high)
#define FINISH_PARAMS int4 added, QUANTIZED_PAIR_PARAMS, QUANTIZED_PAIR_REALS,
#else
#define FINISH_BY_FLOATS4(sum, c, real, r) \
  finish_by_floats4(sum, c, real, dst_zero, dst_low, dst_high)
#define FINISH_PARAMS
#endif
static inline int4 finish_by_floats4(int4 sum, channel4_t c, real_channel4_t real,
                                     FINISH_PARAMS int dst_zero, int dst_low, int dst_high) {
  float off;
  int4 result = BY_FLOATS4(sum, c, real, added, &off);
  if (IS_NEAR(off)) result = BY_INTEGERS4(sum, c, added);
  return result;
}
#endif
