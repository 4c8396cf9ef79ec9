// epilogue.cl - the end of convolutions and matrix products: dst[at] = act(sum + bias[o] + residual[at])
//               or act(sum + bias[o]) + residual[at]; for integers the requantised sum
//
//   __kernel void f(__global const SRC_T *src, ..., BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM ...) {
//     const int at = RESULT_AT(pixel, o, channels);
//     ... STORE4(DST_T, dst, at, FINISH_SUM4(sum, CHANNEL4_AT(o), at));
//
// CHANNEL_T, CHANNEL_AT(o)  the parameters of output channel o, to be loaded once for many sums;
//                           CHANNEL4_T, CHANNEL8_T, CHANNEL16_T: the channels from o on
// CHANNEL4_SOME(o, n)       those of the first n of channels o .. o + 3, a CHANNEL4_T; n may be any number
// FINISH_SUM(sum, c, at)    the result to be stored at the flat index `at` of dst; sum: SUM_T (SUM4_T for
//                           FINISH_SUM4 ...), the products only; c: CHANNEL_T. FINISH_SUM4_ALIGNED: `at`
//                           is a multiple of 4. FINISH_QUICK4 .. 16: for integers, in fewer steps if
//                           clgpu::ops::ChannelTable::quick allows it
// FINISH_LANE(v, at)        for integers: the same for v, one lane of CHANNEL_RESULT4 .. 16 (see
//                           common/requantize.cl), when less than a whole vector is stored
// Only kernels of floats may use the parts of these:
// FINISH_SUM4_WITH(sum, c, at, r)  FINISH_SUM4 with the given elements r of the residual, if there is one
// SUM_LANE4(sum, c, at), FINISH_SUM_LANE(v, c, j, at)  the same as FINISH_SUM in two steps, when less
//                than a whole vector is stored: v is lane j of SUM_LANE4, c the CHANNEL4_T of both
// Only kernels of floats whose families have no slopes (ACT 14) may use these:
// BIAS_AT(o)     bias of output channel o, 0 if there is none; BIAS4_AT, BIAS8_AT, BIAS16_AT: the
//                channels from o on
// FINISH(v, at)  the activation of v plus the residual's element `at`, a flat index of dst; FINISH4,
//                FINISH8, FINISH16: the elements from `at` on; FINISH4_ALIGNED: `at` is a multiple
//                of 4
// FINISH_WITH(v, r)  the same with the given elements r of the residual, if there is one
//
// Macros    BIAS        0|1         1: there is a bias parameter
//           BIAS_T      float|half  element type of bias (any if there is none)
//           RESIDUAL    0|1         1: there is a residual parameter, with the layout of dst
//           RESIDUAL_T  float|half|char|uchar|short  element type of residual (any if there is none)
//           RESIDUAL_AFTER  0|1     1: the residual is added after the activation
//           SLOPES_T if ACT == 14 float|half  element type of slopes, the parameter behind residual:
//                                   a slope for each output channel
//           QUANTIZED   0..4        1, 2: sums are integers, requantised with the scales of `channels`
//                                   (common/requantize.cl); the residual is an integer, too, added
//                                   as in common/quantized_add.cl with the scales of pair_...;
//                                   3: sums are integers and stay as they are, without a residual;
//                                   4: sums are integers and become floats, see common/hybrid.cl
//           TABLE       0|1         1: an 8-bit result is looked up in a table: before the residual is
//                                   added with RESIDUAL_AFTER, else after that; the 256 bytes of the
//                                   table follow `channels`, the entry of v at v modulo 256
//           SCALED      0|1         1, with QUANTIZED 0: weights are int8, and sums are scaled before the
//                                   bias is added; kernels must use FINISH_SUM then
//           SUM_T       float|int|long  type of sums
//           and those of common/result.cl and common/activation.cl
#include "common/activation.cl"
#include "common/result.cl"
#include "common/types.cl"

#define SUM4_T CLGPU_CAT(SUM_T, 4)
#define SUM8_T CLGPU_CAT(SUM_T, 8)
#define SUM16_T CLGPU_CAT(SUM_T, 16)

#if QUANTIZED == 3
#define BIAS_PARAM
#define RESIDUAL_PARAM
#define CHANNEL_T SUM_T
#define CHANNEL4_T SUM4_T
#define CHANNEL8_T SUM8_T
#define CHANNEL16_T SUM16_T
#define CHANNEL_AT(o) ((SUM_T)0)
#define CHANNEL4_AT(o) ((SUM4_T)(0))
#define CHANNEL8_AT(o) ((SUM8_T)(0))
#define CHANNEL16_AT(o) ((SUM16_T)(0))
#define CHANNEL4_SOME(o, n) ((SUM4_T)(0))
#define FINISH_SUM(sum, c, at) (sum)
#define FINISH_SUM4(sum, c, at) (sum)
#define FINISH_SUM4_ALIGNED(sum, c, at) (sum)
#define FINISH_SUM8(sum, c, at) (sum)
#define FINISH_SUM16(sum, c, at) (sum)
#elif QUANTIZED == 1 || QUANTIZED == 2
#include "common/quantized_add.cl"
#include "common/requantize.cl"
#define BIAS_PARAM \
  __global const int *channels, int channel_pitch, int dst_zero, int dst_low, int dst_high,

#if TABLE
#define TABLE_T STEPS_T(DST_T)
#define LOOKED_UP(V, v) \
  CLGPU_CAT(lookup_, V)((__global const TABLE_T *)(channels + 5 * channel_pitch), v)
static inline int lookup_int(__global const TABLE_T *table, int v) { return table[v & 255]; }
static inline int4 lookup_int4(__global const TABLE_T *table, int4 v) {
  return (int4)(lookup_int(table, v.s0), lookup_int(table, v.s1), lookup_int(table, v.s2),
                lookup_int(table, v.s3));
}
static inline int8 lookup_int8(__global const TABLE_T *table, int8 v) {
  return (int8)(lookup_int4(table, v.lo), lookup_int4(table, v.hi));
}
static inline int16 lookup_int16(__global const TABLE_T *table, int16 v) {
  return (int16)(lookup_int8(table, v.lo), lookup_int8(table, v.hi));
}
#else
#define LOOKED_UP(V, v) (v)
#endif

#if !RESIDUAL
#define RESIDUAL_PARAM
#define BEHIND_SUM(V, v, r) LOOKED_UP(V, v)
#else
#define RESIDUAL_PARAM __global const RESIDUAL_T *residual, QUANTIZED_PAIR_PARAMS,
#if RESIDUAL_AFTER
#define BEHIND_SUM(V, v, r) QUANTIZED_ADD(V, LOOKED_UP(V, v), r)
#else
#define BEHIND_SUM(V, v, r) LOOKED_UP(V, QUANTIZED_ADD(V, v, r))
#endif
#endif
// The table has all four.
#define CHANNEL4_SOME(o, n) CHANNEL4_AT(o)
#define FINISH_LANE(v, at) BEHIND_SUM(int, v, LOAD(RESIDUAL_T, residual, at))
#define FINISH_SUM(sum, c, at) FINISH_LANE(CHANNEL_RESULT(sum, c), at)
#define FINISH_SUM4(sum, c, at) \
  BEHIND_SUM(int4, CHANNEL_RESULT4(sum, c), LOAD4(RESIDUAL_T, residual, at))
#define FINISH_SUM4_ALIGNED(sum, c, at) \
  BEHIND_SUM(int4, CHANNEL_RESULT4(sum, c), LOAD4_ALIGNED(RESIDUAL_T, residual, at))
#define FINISH_SUM8(sum, c, at) \
  BEHIND_SUM(int8, CHANNEL_RESULT8(sum, c), LOAD8(RESIDUAL_T, residual, at))
#define FINISH_SUM16(sum, c, at) \
  BEHIND_SUM(int16, CHANNEL_RESULT16(sum, c), LOAD16(RESIDUAL_T, residual, at))
#define FINISH_QUICK4(sum, c, at) \
  BEHIND_SUM(int4, CHANNEL_QUICK4(sum, c), LOAD4(RESIDUAL_T, residual, at))
#define FINISH_QUICK8(sum, c, at) \
  BEHIND_SUM(int8, CHANNEL_QUICK8(sum, c), LOAD8(RESIDUAL_T, residual, at))
#define FINISH_QUICK16(sum, c, at) \
  BEHIND_SUM(int16, CHANNEL_QUICK16(sum, c), LOAD16(RESIDUAL_T, residual, at))
#else
// Of the three kinds of float results: what a product has of its own for each channel (OWN4_T,
// OWN4_AT(o)), and the value before residual and activation, VALUE4(sum, own, at).
#if QUANTIZED == 4
#include "common/hybrid.cl"
#elif SCALED
#define CHANNELS_SCALED(N, F)                              \
  typedef struct {                                         \
    F bias, scale;                                         \
  } scaled##N##_t;                                         \
  static inline scaled##N##_t scaled##N(F bias, F scale) { \
    scaled##N##_t c = {bias, scale};                       \
    return c;                                              \
  }
CHANNELS_SCALED(1, float)
CHANNELS_SCALED(4, float4)
CHANNELS_SCALED(8, float8)
CHANNELS_SCALED(16, float16)
#define OWN1_T scaled1_t
#define OWN4_T scaled4_t
#define OWN8_T scaled8_t
#define OWN16_T scaled16_t
#define WEIGHT_SCALE_AT(o) weight_scales[o]
#define OWN1_AT(o) scaled1(BIAS_AT(o), WEIGHT_SCALE_AT(o))
#define OWN4_AT(o) scaled4(BIAS4_AT(o), vload4(0, weight_scales + (o)))
#define OWN8_AT(o) scaled8(BIAS8_AT(o), vload8(0, weight_scales + (o)))
#define OWN16_AT(o) scaled16(BIAS16_AT(o), vload16(0, weight_scales + (o)))
#define OWN4_SOME(o, n) scaled4(SOME4(BIAS_AT, o, n), SOME4(WEIGHT_SCALE_AT, o, n))
#define VALUE_OF(sum, own) ((sum) * (own).scale + (own).bias)
#define VALUE1(sum, own, at) VALUE_OF(sum, own)
#define VALUE4(sum, own, at) VALUE_OF(sum, own)
#define VALUE8(sum, own, at) VALUE_OF(sum, own)
#define VALUE16(sum, own, at) VALUE_OF(sum, own)
#define SCALES_PARAM __global const float *weight_scales,
#else
#define OWN1_T float
#define OWN4_T float4
#define OWN8_T float8
#define OWN16_T float16
#define OWN1_AT(o) BIAS_AT(o)
#define OWN4_AT(o) BIAS4_AT(o)
#define OWN8_AT(o) BIAS8_AT(o)
#define OWN16_AT(o) BIAS16_AT(o)
#define OWN4_SOME(o, n) SOME4(BIAS_AT, o, n)
#define VALUE1(sum, own, at) ((sum) + (own))
#define VALUE4(sum, own, at) ((sum) + (own))
#define VALUE8(sum, own, at) ((sum) + (own))
#define VALUE16(sum, own, at) ((sum) + (own))
#define SCALES_PARAM
#endif

// The first n of AT(o) .. AT(o + 3), then zeros.
#define SOME4(AT, o, n)                                                                        \
  (float4)((n) > 0 ? AT(o) : 0.0f, (n) > 1 ? AT((o) + 1) : 0.0f, (n) > 2 ? AT((o) + 2) : 0.0f, \
           (n) > 3 ? AT((o) + 3) : 0.0f)

#if BIAS
#define BIAS_PARAM SCALES_PARAM __global const BIAS_T *bias,
#define BIAS_AT(o) LOAD(BIAS_T, bias, o)
#define BIAS4_AT(o) LOAD4(BIAS_T, bias, o)
#define BIAS8_AT(o) LOAD8(BIAS_T, bias, o)
#define BIAS16_AT(o) LOAD16(BIAS_T, bias, o)
#else
#define BIAS_PARAM SCALES_PARAM
#define BIAS_AT(o) 0.0f
#define BIAS4_AT(o) (float4)(0.0f)
#define BIAS8_AT(o) (float8)(0.0f)
#define BIAS16_AT(o) (float16)(0.0f)
#endif

// ACTIVATED4(v, c): the activation of v, whose channels have the parameters c.
#if ACT == 14
#define SLOPES_PARAM __global const SLOPES_T *slopes,
#define SLOPE_AT(o) LOAD(SLOPES_T, slopes, o)
#define CHANNELS_SLOPED(N, F)                                       \
  typedef struct {                                                  \
    OWN##N##_T own;                                                 \
    F slopes;                                                       \
  } sloped##N##_t;                                                  \
  static inline sloped##N##_t sloped##N(OWN##N##_T own, F slopes) { \
    sloped##N##_t c = {own, slopes};                                \
    return c;                                                       \
  }                                                                 \
  static inline F sloped_value##N(F v, F slopes) { return v >= 0.0f ? v : v * slopes; }
CHANNELS_SLOPED(1, float)
CHANNELS_SLOPED(4, float4)
CHANNELS_SLOPED(8, float8)
CHANNELS_SLOPED(16, float16)
#define CHANNEL_T sloped1_t
#define CHANNEL4_T sloped4_t
#define CHANNEL8_T sloped8_t
#define CHANNEL16_T sloped16_t
#define CHANNEL_AT(o) sloped1(OWN1_AT(o), SLOPE_AT(o))
#define CHANNEL4_AT(o) sloped4(OWN4_AT(o), LOAD4(SLOPES_T, slopes, o))
#define CHANNEL8_AT(o) sloped8(OWN8_AT(o), LOAD8(SLOPES_T, slopes, o))
#define CHANNEL16_AT(o) sloped16(OWN16_AT(o), LOAD16(SLOPES_T, slopes, o))
#define CHANNEL4_SOME(o, n) sloped4(OWN4_SOME(o, n), SOME4(SLOPE_AT, o, n))
#define OWN(c) (c).own
#define ACTIVATED1(v, c) sloped_value1(v, (c).slopes)
#define ACTIVATED4(v, c) sloped_value4(v, (c).slopes)
#define ACTIVATED8(v, c) sloped_value8(v, (c).slopes)
#define ACTIVATED16(v, c) sloped_value16(v, (c).slopes)
#define ACTIVATED_LANE(v, c, j) sloped_value1(v, (c).slopes.s##j)
#else
#define SLOPES_PARAM
#define CHANNEL_T OWN1_T
#define CHANNEL4_T OWN4_T
#define CHANNEL8_T OWN8_T
#define CHANNEL16_T OWN16_T
#define CHANNEL_AT(o) OWN1_AT(o)
#define CHANNEL4_AT(o) OWN4_AT(o)
#define CHANNEL8_AT(o) OWN8_AT(o)
#define CHANNEL16_AT(o) OWN16_AT(o)
#define CHANNEL4_SOME(o, n) OWN4_SOME(o, n)
#define OWN(c) (c)
#define ACTIVATED1(v, c) ACTIVATE(v)
#define ACTIVATED4(v, c) ACTIVATE(v)
#define ACTIVATED8(v, c) ACTIVATE(v)
#define ACTIVATED16(v, c) ACTIVATE(v)
#define ACTIVATED_LANE(v, c, j) ACTIVATE(v)
#define FINISH(v, at) ENDED(ACTIVATED1, v, 0, LOAD(RESIDUAL_T, residual, at))
#define FINISH4(v, at) ENDED(ACTIVATED4, v, 0, LOAD4(RESIDUAL_T, residual, at))
#define FINISH4_ALIGNED(v, at) ENDED(ACTIVATED4, v, 0, LOAD4_ALIGNED(RESIDUAL_T, residual, at))
#define FINISH8(v, at) ENDED(ACTIVATED8, v, 0, LOAD8(RESIDUAL_T, residual, at))
#define FINISH16(v, at) ENDED(ACTIVATED16, v, 0, LOAD16(RESIDUAL_T, residual, at))
#define FINISH_WITH(v, r) ENDED(ACTIVATED4, v, 0, r)
#endif

// ACTIVATED and the residual's elements r, which are not read if there is none.
#if !RESIDUAL
#define RESIDUAL_PARAM SLOPES_PARAM
#define ENDED(ACTIVATED, v, c, r) ACTIVATED(v, c)
#define ENDED_LANE(v, c, j, r) ACTIVATED_LANE(v, c, j)
#else
#define RESIDUAL_PARAM __global const RESIDUAL_T *residual, SLOPES_PARAM
#if RESIDUAL_AFTER
#define ENDED(ACTIVATED, v, c, r) (ACTIVATED(v, c) + (r))
#define ENDED_LANE(v, c, j, r) (ACTIVATED_LANE(v, c, j) + (r))
#else
#define ENDED(ACTIVATED, v, c, r) ACTIVATED((v) + (r), c)
#define ENDED_LANE(v, c, j, r) ACTIVATED_LANE((v) + (r), c, j)
#endif
#endif
#define FINISH_SUM(sum, c, at) \
  ENDED(ACTIVATED1, VALUE1(sum, OWN(c), at), c, LOAD(RESIDUAL_T, residual, at))
#define FINISH_SUM4_WITH(sum, c, at, r) ENDED(ACTIVATED4, VALUE4(sum, OWN(c), at), c, r)
#define FINISH_SUM4(sum, c, at) FINISH_SUM4_WITH(sum, c, at, LOAD4(RESIDUAL_T, residual, at))
#define FINISH_SUM4_ALIGNED(sum, c, at) \
  FINISH_SUM4_WITH(sum, c, at, LOAD4_ALIGNED(RESIDUAL_T, residual, at))
#define FINISH_SUM8(sum, c, at) \
  ENDED(ACTIVATED8, VALUE8(sum, OWN(c), at), c, LOAD8(RESIDUAL_T, residual, at))
#define FINISH_SUM16(sum, c, at) \
  ENDED(ACTIVATED16, VALUE16(sum, OWN(c), at), c, LOAD16(RESIDUAL_T, residual, at))
#define SUM_LANE4(sum, c, at) VALUE4(sum, OWN(c), at)
#define FINISH_SUM_LANE(v, c, j, at) ENDED_LANE(v, c, j, LOAD(RESIDUAL_T, residual, at))
#endif
