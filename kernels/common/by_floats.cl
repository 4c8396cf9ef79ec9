// by_floats.cl - for kernels that include common/epilogue.cl before: requantised sums of 8 bits, and their quantised
//                sums with a residual, computed as floats. Where a float is so near to a half that its error may
//                decide how it is rounded, the integers of TFLite's reference kernels decide, so results are equal in
//                every bit
//
// REAL_CHANNEL4_T, REAL_CHANNEL4(c)        what these floats need of c, a CHANNEL4_T of common/epilogue.cl
// FINISH_BY_FLOATS4(sum, c, real, at)      FINISH_SUM4_ALIGNED in fewer steps; real: REAL_CHANNEL4(c)
//
// Only with clgpu::ops::may_end_by_floats. RESIDUAL_PARAM gets the members of clgpu::ops::RealPair at its end.
//
// The two roundings of REQUANTIZE with a shift to the right, by n, are one of the exact number moved away from zero by
// 2^-(n + 1). Errors, in units of the last place of the result: a float's product with three roundings of 2^-25 of at
// most 256 each, and that of the addition, 2^-15; with a residual, whose factors are at most 2, 2^-14 with the
// roundings of the common scale, which has 2^-18 of a unit at least.
//
// Macros    BY_FLOATS if QUANTIZED == 1  0|1  1: there is FINISH_BY_FLOATS4
//           and those of common/epilogue.cl
// Numerics  as FINISH_SUM4_ALIGNED, in every bit
#if BY_FLOATS
#define REAL_CHANNEL4_T real_channel4_t
#define REAL_CHANNEL4(c) real_channel4(c)
#define QUANTIZED_PAIR_REALS float real_a, float real_b, float real_start
#define REAL_ROUNDER 12582912.0f  // 1.5 * 2^23: a float plus this has no fraction
#define REAL_FARTHEST (0.5f - 0x1p-13f)

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
#define REAL_PARAMS int4 added, QUANTIZED_PAIR_PARAMS, QUANTIZED_PAIR_REALS,
#define REAL_ARGS(at)                                                                          \
  LOAD4_ALIGNED(RESIDUAL_T, residual, at), pair_left, pair_a_zero, pair_a_multiplier,          \
      pair_a_shift, pair_b_zero, pair_b_multiplier, pair_b_shift, pair_multiplier, pair_shift, \
      pair_zero, pair_low, pair_high, real_a, real_b, real_start,
#else
#define REAL_PARAMS
#define REAL_ARGS(at)
#endif
#define FINISH_BY_FLOATS4(sum, c, real, at) \
  finish_by_floats4(sum, c, real, REAL_ARGS(at) dst_zero, dst_low, dst_high)
static inline int4 finish_by_floats4(int4 sum, channel4_t c, real_channel4_t real,
                                     REAL_PARAMS int dst_zero, int dst_low, int dst_high) {
  const float4 x = convert_float4(sum + c.start) * real.scale;
  float4 y =
      clamp(x + copysign(real.away, x), (float)(dst_low - dst_zero), (float)(dst_high - dst_zero));
  float4 shifted = y + REAL_ROUNDER;
#if RESIDUAL
  const float4 whole = shifted - REAL_ROUNDER;
  float4 off = fabs(y - whole);
  y = clamp(fma(whole, (float4)(real_a),
                fma(convert_float4(added), (float4)(real_b), (float4)(real_start))),
            (float)pair_low, (float)pair_high);
  shifted = y + REAL_ROUNDER;
  off = max(off, fabs(y - (shifted - REAL_ROUNDER)));
  int4 result = as_int4(shifted) - as_int(REAL_ROUNDER);
#else
  const float4 off = fabs(y - (shifted - REAL_ROUNDER));
  int4 result = as_int4(shifted) - (as_int(REAL_ROUNDER) - dst_zero);
#endif
  if (max(max(off.s0, off.s1), max(off.s2, off.s3)) > REAL_FARTHEST) {
#if RESIDUAL
    result = QUANTIZED_ADD(int4, CHANNEL_RESULT4(sum, c), added);
#else
    result = CHANNEL_RESULT4(sum, c);
#endif
  }
  return result;
}
#endif
