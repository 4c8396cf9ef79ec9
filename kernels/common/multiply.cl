// multiply.cl - integers times a real number that is given as a multiplier of 31 bits and a shift, bit
// for bit as TFLite's reference kernels
//
// requantize_int(x, m, shift)  x * m * 2^(shift - 31), m >= 0: first (x * 2^shift) * m * 2^-31 with halves
//                              going up, then, for a negative shift, a division with halves away from
//                              zero; requantize_int4, requantize_int8, requantize_int16 of vectors
// requantize_long(x, m, shift) the same of a long, in one step, with 15 bits of m
// requantize_high(a, b)        a * b * 2^-31 with halves going up
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
