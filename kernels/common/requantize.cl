// requantize.cl - from sums of products to quantised results, bit for bit as TFLite's reference kernels
//
//   channels  a table of ints, [4][channel_pitch]: for each output channel the number that is added to
//             its sum (bias and what the zero points amount to; row 3 holds its upper half where sums
//             are long), a multiplier and its shift. kernels/requantize/channels.cl writes it
//
// REQUANTIZE(x, m, shift)  x * m * 2^(shift - 31), rounded as TFLite does; x an int, m >= 0: first
//                          (x * 2^shift) * m * 2^-31 with halves going up, then, for a negative shift, a
//                          division with halves away from zero. x a long: in one step, with 15 bits of m
// CHANNEL_T, CHANNEL_AT(o)   a channel's row of the table, kept in registers; CHANNEL4_T .. CHANNEL16_T:
//                            of the channels from o on
// FINISH_SUM(sum, c, at)     the stored integer, of channel c; FINISH_SUM4 .. FINISH_SUM16 likewise
//
// Macros    SUM_T  int|long  type of sums; vectors of long are not made
//           DST_T  as in common/epilogue.cl
#include "common/types.cl"
#ifndef SUM_T
#error "SUM_T is required (int or long)"
#endif

#define REQUANTIZE(x, m, shift) CLGPU_CAT(requantize_, SUM_T)(x, m, shift)

// The high half of 2 * a * b, rounded: mul_hi keeps GPUs without 64-bit products fast.
static inline int requantize_high(int a, int b) {
  const uint low = (uint)a * (uint)b;
  return (int)(((uint)mul_hi(a, b) << 1) + (low >> 31) + ((low >> 30) & 1u));
}
static inline int requantize_int(int x, int m, int shift) {
  const int left = max(shift, 0), right = max(-shift, 0);
  const int high = requantize_high((int)((uint)x << left), m);
  const int mask = (int)((1u << right) - 1u);
  const int threshold = (mask >> 1) + (high < 0 ? 1 : 0);
  return (high >> right) + ((high & mask) > threshold ? 1 : 0);
}
static inline int requantize_long(long x, int m, int shift) {
  const int reduced = m < 0x7FFF0000 ? (m + (1 << 15)) >> 16 : 0x7FFF;
  const int total = 15 - shift;
  return (int)((x * (long)reduced + (1L << (total - 1))) >> total);
}
#define REQUANTIZE_VECTOR(N)                                                                \
  static inline int##N requantize_int##N(int##N x, int##N m, int##N shift) {                \
    const int##N left = max(shift, 0), right = max(-shift, 0);                              \
    const int##N y = as_int##N(as_uint##N(x) << as_uint##N(left));                          \
    const uint##N low = as_uint##N(y) * as_uint##N(m);                                      \
    const int##N high =                                                                     \
        as_int##N((as_uint##N(mul_hi(y, m)) << 1u) + (low >> 31u) + ((low >> 30u) & 1u));   \
    const int##N mask = as_int##N(((uint##N)(1u) << as_uint##N(right)) - 1u);               \
    const int##N threshold = (mask >> 1) - (high < 0); /* a true vector comparison is -1 */ \
    return (high >> right) - ((high & mask) > threshold);                                   \
  }
REQUANTIZE_VECTOR(4)
REQUANTIZE_VECTOR(8)
REQUANTIZE_VECTOR(16)

typedef struct {
  SUM_T start;
  int multiplier, shift;
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
  return c;
}
#define FINISH_SUM(sum, c, at) \
  clamp(REQUANTIZE((sum) + (c).start, (c).multiplier, (c).shift) + dst_zero, dst_low, dst_high)

#define CHANNELS_OF(N)                                                                            \
  typedef struct {                                                                                \
    int##N start, multiplier, shift;                                                              \
  } channel##N##_t;                                                                               \
  static inline channel##N##_t channel##N##_at(__global const int *channels, int pitch, int o) {  \
    channel##N##_t c;                                                                             \
    c.start = vload##N(0, channels + o);                                                          \
    c.multiplier = vload##N(0, channels + pitch + o);                                             \
    c.shift = vload##N(0, channels + 2 * pitch + o);                                              \
    return c;                                                                                     \
  }                                                                                               \
  static inline int##N finish_sum##N(int##N sum, channel##N##_t c, int zero, int low, int high) { \
    return clamp(requantize_int##N(sum + c.start, c.multiplier, c.shift) + zero, low, high);      \
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
#define FINISH_SUM4(sum, c, at) finish_sum4(sum, c, dst_zero, dst_low, dst_high)
#define FINISH_SUM8(sum, c, at) finish_sum8(sum, c, dst_zero, dst_low, dst_high)
#define FINISH_SUM16(sum, c, at) finish_sum16(sum, c, dst_zero, dst_low, dst_high)
#define FINISH_SUM4_ALIGNED(sum, c, at) FINISH_SUM4(sum, c, at)
