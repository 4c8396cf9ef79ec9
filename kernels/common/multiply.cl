// multiply.cl - integers times a real number, given as a 31-bit multiplier and a shift, bit for bit
// as in TFLite's reference kernels
//
// requantize_int(x, m, shift)  x * m * 2^(shift - 31), m >= 0: first (x * 2^shift) * m * 2^-31, halves
//                              rounded up, then, for a negative shift, a division with halves rounded
//                              away from zero; requantize_int4, requantize_int8, requantize_int16: vectors
// requantize_long(x, m, shift) the same for a long, in one step, with 15 bits of m
// requantize_high(a, b)        a * b * 2^-31, halves rounded up
// The high half of 2 * a * b, rounded: mul_hi is fast on GPUs without 64-bit products. It takes 2 * b as a
// signed number; if that overflows, it is off by 2^32, which changes the high half by a. Shifting two halves
// together would work, too, but compilers turn that into a funnel shift, which simulators do not know.
static inline int requantize_high(int a, int b) {
  const uint twice = (uint)b << 1;
  const int off = (b >> 31) - ((int)twice >> 31);
  return mul_hi(a, (int)twice) + a * off + (int)(((uint)a * twice) >> 31);
}
static inline int requantize_int(int x, int m, int shift) {
  const int left = max(shift, 0), right = max(-shift, 0);
  const int y = (int)((uint)x << left), twice = (int)((uint)m << 1);
  const int high = mul_hi(y, twice) + (y & (twice >> 31)) + (int)(((uint)y * (uint)twice) >> 31);
  const int mask = (int)((1u << right) - 1u);
  const int threshold = (mask >> 1) + (high < 0 ? 1 : 0);
  return (high >> right) + ((high & mask) > threshold ? 1 : 0);
}
static inline int requantize_long(long x, int m, int shift) {
  const int reduced = m < 0x7FFF0000 ? (m + (1 << 15)) >> 16 : 0x7FFF;
  const int total = 15 - shift;
  return (int)((x * (long)reduced + (1L << (total - 1))) >> total);
}
static inline int4 requantize_high4(int4 a, int4 b) {
  const int4 twice = as_int4(as_uint4(b) << 1u);
  return mul_hi(a, twice) + (a & (twice >> 31)) + as_int4((as_uint4(a) * as_uint4(twice)) >> 31u);
}
// CPUs multiply every second int of a register to longs: here first the even ones, then the odd ones.
#define REQUANTIZE_HIGH(N, H)                                                     \
  static inline int##N requantize_high##N(int##N a, int##N b) {                   \
    const long##H x = as_long##H(a), y = as_long##H(b);                           \
    const long##H even = ((x << 32) >> 32) * ((y << 32) >> 32) + (1L << 30);      \
    const long##H odd = (x >> 32) * (y >> 32) + (1L << 30);                       \
    return as_int##N(((even >> 31) & 0xFFFFFFFFL) | ((odd << 1) & ~0xFFFFFFFFL)); \
  }
REQUANTIZE_HIGH(8, 4)
REQUANTIZE_HIGH(16, 8)
#if __NV_CL_C_VERSION  // NVIDIA's compiler makes slower code of vectors than of their elements
static inline int4 requantize_int4(int4 x, int4 m, int4 shift) {
  return (int4)(requantize_int(x.s0, m.s0, shift.s0), requantize_int(x.s1, m.s1, shift.s1),
                requantize_int(x.s2, m.s2, shift.s2), requantize_int(x.s3, m.s3, shift.s3));
}
static inline int8 requantize_int8(int8 x, int8 m, int8 shift) {
  return (int8)(requantize_int4(x.lo, m.lo, shift.lo), requantize_int4(x.hi, m.hi, shift.hi));
}
static inline int16 requantize_int16(int16 x, int16 m, int16 shift) {
  return (int16)(requantize_int8(x.lo, m.lo, shift.lo), requantize_int8(x.hi, m.hi, shift.hi));
}
#else
#define REQUANTIZE_VECTOR(N)                                                                    \
  static inline int##N requantize_int##N(int##N x, int##N m, int##N shift) {                    \
    const int##N left = max(shift, (int##N)(0)), right = max(-shift, (int##N)(0));              \
    const int##N high = requantize_high##N(as_int##N(as_uint##N(x) << as_uint##N(left)), m);    \
    /* Halves of negative numbers are rounded down: the floor of a slightly smaller value. */   \
    const int##N less = high + ((high >> 31) & -min(right, (int##N)(1)));                       \
    const uint##N half_bit = ((uint##N)(1u) << as_uint##N(right)) >> 1u;                        \
    return (less >> right) +                                                                    \
           as_int##N((as_uint##N(less) & half_bit) >> as_uint##N(max(right - 1, (int##N)(0)))); \
  }
REQUANTIZE_VECTOR(4)
REQUANTIZE_VECTOR(8)
REQUANTIZE_VECTOR(16)
#endif
