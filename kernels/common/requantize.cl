// requantize.cl - from sums of products to quantised results, bit for bit as in TFLite's reference kernels
//
//   channels  a table of ints, [5][channel_pitch]: for each output channel a summand (bias and the share
//             of the zero points; row 3 holds its upper half if sums are long), a multiplier (row 4:
//             its upper half) and its shift.
//             kernels/requantize/channels.cl writes it
//
// REQUANTIZE(x, m, shift)  x * m * 2^(shift - 31), rounded as in TFLite. x an int, m >= 0: first
//                          (x * 2^shift) * m * 2^-31, halves rounded up, then, for a negative shift, a
//                          division with halves away from zero. x a long: in one step, with 15 bits of m
// requantize_real(x, m, shift)  x * m * 2^(shift - 53), m of 53 bits, as a product of doubles,
//                               rounded to an integer with halves away from zero; at most 2^30
// CHANNEL_T, CHANNEL_AT(o)   a channel's column of the table, in registers; CHANNEL4_T .. CHANNEL16_T:
//                            the channels from o on
// CHANNEL_RESULT(sum, c)     the stored integer of channel c; CHANNEL_RESULT4 .. CHANNEL_RESULT16
//                            likewise
// CHANNEL_QUICK4 .. 16       the same in fewer steps, if clgpu::ops::ChannelTable::quick allows it
//
// Macros    SUM_T      int|long  type of sums; there are no vectors of long
//           QUANTIZED  1|2       how sums are requantised: 1 REQUANTIZE, 2 requantize_real
//           DST_T      as in common/epilogue.cl
#include "common/multiply.cl"
#include "common/types.cl"

#define REQUANTIZE(x, m, shift) CLGPU_CAT(requantize_, SUM_T)(x, m, shift)

#if QUANTIZED == 2
#define REQUANTIZE_BIT(n) ((n) >= 0 && (n) < 64 ? 1UL << ((n) & 63) : 0UL)
// The 128 bits of a * m are first rounded to the 53 bits of a double. That changes the final result only if the
// product is less than half a unit in the last place below a half, so that half unit is added instead.
static inline int requantize_exact(ulong a, ulong m, int shift) {
  const int right = 53 - shift;  // 22 .. 116
  ulong low = a * m, high = mul_hi(a, m);
  const int round = (high != 0 ? 128 - (int)clz(high) : 64 - (int)clz(low)) - 54;
  const ulong half_place = REQUANTIZE_BIT(round);
  low += half_place;
  high += low < half_place ? 1 : 0;
  const ulong half_of_one = REQUANTIZE_BIT(right - 1);
  low += half_of_one;
  high += (low < half_of_one ? 1 : 0) + REQUANTIZE_BIT(right - 65);
  if (right < 64 && high >> right != 0) return 1 << 30;
  const ulong y = right < 64 ? high << (64 - right) | low >> right : high >> (right - 64);
  return (int)min(y, 1UL << 30);
}
static inline int requantize_real_long(long x, ulong m, int shift) {
  const int y = requantize_exact(abs(x), m, shift);
  return x < 0 ? -y : y;
}
static inline int requantize_real_int(int x, ulong m, int shift) {
  const uint a = abs(x);
  const int right = 32 - shift;
  int y = 0;
  if (right < 64) {
    // 32 bits of m give the same result except close to a half: the missing bits and a double's rounding
    // together are less than a + 4096.
    const ulong product = (ulong)a * (m >> 21) + (1UL << (right - 1));
    const ulong least = product >> right, most = (product + a + 4096) >> right;
    y = least == most ? (int)min(least, 1UL << 30) : requantize_exact(a, m, shift);
  }
  return x < 0 ? -y : y;
}
#define requantize_real(x, m, shift) CLGPU_CAT(requantize_real_, SUM_T)(x, m, shift)
#endif

typedef struct {
  SUM_T start;
  int multiplier, shift;
#if QUANTIZED == 2
  int upper;
#endif
} channel_t;
#define CHANNEL_T channel_t
#define CHANNEL_AT(o) channel_at(channels, channel_pitch, o)
static inline channel_t channel_at(__global const int *channels, int pitch, int o) {
  channel_t c;
  c.start = (SUM_T)channels[o];
  const SUM_T one = 1;
  if (sizeof(one) == 8) c.start = (SUM_T)upsample(channels[3 * pitch + o], as_uint(channels[o]));
  c.multiplier = channels[pitch + o];
  c.shift = channels[2 * pitch + o];
#if QUANTIZED == 2
  c.upper = channels[4 * pitch + o];
#endif
  return c;
}
#if QUANTIZED == 2
#define REQUANTIZE_SUM(sum, c) \
  requantize_real((sum) + (c).start, upsample((c).upper, as_uint((c).multiplier)), (c).shift)
#else
#define REQUANTIZE_SUM(sum, c) REQUANTIZE((sum) + (c).start, (c).multiplier, (c).shift)
#endif
#define CHANNEL_RESULT(sum, c) clamp(REQUANTIZE_SUM(sum, c) + dst_zero, dst_low, dst_high)

#if QUANTIZED == 2
#define CHANNELS_UPPER(N) int##N upper;
#define CHANNELS_LOAD_UPPER(N) c.upper = vload##N(0, channels + 4 * pitch + o);
static inline int4 requantize_sum4(int4 x, int4 m, int4 upper, int4 shift) {
  return (int4)(requantize_real_int(x.s0, upsample(upper.s0, as_uint(m.s0)), shift.s0),
                requantize_real_int(x.s1, upsample(upper.s1, as_uint(m.s1)), shift.s1),
                requantize_real_int(x.s2, upsample(upper.s2, as_uint(m.s2)), shift.s2),
                requantize_real_int(x.s3, upsample(upper.s3, as_uint(m.s3)), shift.s3));
}
static inline int8 requantize_sum8(int8 x, int8 m, int8 upper, int8 shift) {
  return (int8)(requantize_sum4(x.lo, m.lo, upper.lo, shift.lo),
                requantize_sum4(x.hi, m.hi, upper.hi, shift.hi));
}
static inline int16 requantize_sum16(int16 x, int16 m, int16 upper, int16 shift) {
  return (int16)(requantize_sum8(x.lo, m.lo, upper.lo, shift.lo),
                 requantize_sum8(x.hi, m.hi, upper.hi, shift.hi));
}
#define REQUANTIZE_SUMS(N, sum, c) \
  requantize_sum##N((sum) + (c).start, (c).multiplier, (c).upper, (c).shift)
#else
#define CHANNELS_UPPER(N)
#define CHANNELS_LOAD_UPPER(N)
#define REQUANTIZE_SUMS(N, sum, c) requantize_int##N((sum) + (c).start, (c).multiplier, (c).shift)
#endif
#define CHANNELS_OF(N)                                                                           \
  typedef struct {                                                                               \
    int##N start, multiplier, shift;                                                             \
    CHANNELS_UPPER(N)                                                                            \
  } channel##N##_t;                                                                              \
  static inline channel##N##_t channel##N##_at(__global const int *channels, int pitch, int o) { \
    channel##N##_t c;                                                                            \
    c.start = vload##N(0, channels + o);                                                         \
    c.multiplier = vload##N(0, channels + pitch + o);                                            \
    c.shift = vload##N(0, channels + 2 * pitch + o);                                             \
    CHANNELS_LOAD_UPPER(N)                                                                       \
    return c;                                                                                    \
  }                                                                                              \
  static inline int##N channel_result##N(int##N sum, channel##N##_t c, int zero, int low,        \
                                         int high) {                                             \
    return clamp(REQUANTIZE_SUMS(N, sum, c) + zero, (int##N)(low), (int##N)(high));              \
  }
CHANNELS_OF(4)
CHANNELS_OF(8)
CHANNELS_OF(16)
#define CHANNEL4_T channel4_t
#define CHANNEL8_T channel8_t
#define CHANNEL16_T channel16_t
#define CHANNEL4_AT(o) channel4_at(channels, channel_pitch, o)
#define CHANNEL8_AT(o) channel8_at(channels, channel_pitch, o)
#define CHANNEL16_AT(o) channel16_at(channels, channel_pitch, o)
#define CHANNEL_RESULT4(sum, c) channel_result4(sum, c, dst_zero, dst_low, dst_high)
#define CHANNEL_RESULT8(sum, c) channel_result8(sum, c, dst_zero, dst_low, dst_high)
#define CHANNEL_RESULT16(sum, c) channel_result16(sum, c, dst_zero, dst_low, dst_high)

// A start beyond 2^29 gives a result out of range anyway; clamped, it cannot make this division overflow.
#define CHANNEL_QUICK_OF(N)                                                              \
  static inline int##N channel_quick##N(int##N sum, channel##N##_t c, int zero, int low, \
                                        int high) {                                      \
    const int##N start = clamp(c.start, (int##N)(-(1 << 29)), (int##N)(1 << 29)),        \
                 right = -c.shift;                                                       \
    const int##N nudge = ((int##N)(1) << (right - 1)) + ((int##N)(zero) << right);       \
    const int##N y = requantize_high##N(sum + start, c.multiplier);                      \
    return clamp((y + (y >> 31) + nudge) >> right, (int##N)(low), (int##N)(high));       \
  }
CHANNEL_QUICK_OF(4)
CHANNEL_QUICK_OF(8)
CHANNEL_QUICK_OF(16)
#define CHANNEL_QUICK4(sum, c) channel_quick4(sum, c, dst_zero, dst_low, dst_high)
#define CHANNEL_QUICK8(sum, c) channel_quick8(sum, c, dst_zero, dst_low, dst_high)
#define CHANNEL_QUICK16(sum, c) channel_quick16(sum, c, dst_zero, dst_low, dst_high)
