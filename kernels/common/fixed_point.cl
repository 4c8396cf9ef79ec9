// fixed_point.cl - functions of fixed-point numbers, bit for bit as in TFLite's reference kernels
//
// A Qm number is an int n that stands for n * 2^(m - 31).
//
// FIXED_MUL(a, b)         the product, rounded: a in Qm, b in Qn, the result in Q(m + n)
// FIXED_SHIFT(x, n)       x / 2^n, halves away from zero
// FIXED_LEFT(x, n)        x * 2^n, saturated
// fixed_one_over(x)       1 / (1 + x) in Q0; x in Q0 and not negative
// fixed_reciprocal(x, p)  1 / x for an integer x > 0: the caller divides the result, in Q0, by 2^*p
// fixed_inverse_root(x, p)  1 / sqrt(x) for an integer x >= 0, likewise; 0 gives the result of 1
// fixed_log(x)              log(x) in Q5; x in Q12 and at least 1
#include "common/multiply.cl"

#define FIXED_MUL(a, b) requantize_high(a, b)
#define FIXED_SHIFT(x, n) fixed_shift(x, n)
#define FIXED_LEFT(x, n) fixed_left(x, n)

// Shifts beyond 31 are undefined in the reference kernels; here, as on x86, they count modulo the width.
static inline int fixed_shift(int x, int n) {
  const int mask = (int)((1UL << n) - 1);
  return (x >> n) + ((x & mask) > (mask >> 1) + (x < 0 ? 1 : 0) ? 1 : 0);
}
static inline int fixed_left(int x, int n) {
  const int most = (1 << (31 - n)) - 1;
  return x > most ? INT_MAX : x < -most ? INT_MIN : (int)((uint)x << n);
}
static inline int fixed_one_over(int x) {
  const int halved = (int)(((uint)x + (1u << 31)) >> 1);  // the halved denominator
  // Newton's iteration from 48/17 - 32/17 d, in Q2
  int y = 1515870810 + FIXED_MUL(halved, -1010580540);
  for (int i = 0; i < 3; ++i) y += FIXED_LEFT(FIXED_MUL(y, (1 << 29) - FIXED_MUL(halved, y)), 2);
  return FIXED_LEFT(y, 1);
}
static inline int fixed_reciprocal(int x, int *p) {
  const int zeros = clz(x);
  *p = 31 - zeros;
  return fixed_one_over((int)(((uint)x << zeros) - (1u << 31)));
}
static inline int fixed_inverse_root(int x, int *p) {
  *p = 0;
  if (x <= 1) return INT_MAX;
  int right = 11;
  for (; x >= 1 << 29; ++right) x /= 4;
  for (; x < 1 << 27; --right) x *= 4;
  // Newton's iteration for 1 / sqrt(x * 2^-29), in Q3, starting at 1
  const int halved = FIXED_SHIFT(x >> 1, 1);
  int y = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int cube = FIXED_LEFT(FIXED_MUL(FIXED_MUL(y, y), y), 6);
    y = FIXED_LEFT(FIXED_MUL((1 << 28) + (1 << 27), y) - FIXED_MUL(halved, cube), 3);
  }
  y = FIXED_MUL(y, 1518500250);  // sqrt(1/2) in Q0
  *p = max(right, 0);
  return y << max(-right, 0);
}
static inline int fixed_log(int x) {
  const int sqrt_half = 1518500250, root = 1805811301, quarter = 1 << 23;
  // Of two ways to write x = r * 2^z, the one whose r is nearer to sqrt(sqrt(1/2)); r in Q0, z in Q6
  const int zeros = clz(x), zeros_b = clz(FIXED_MUL(x, sqrt_half)) - 1;
  const int r_a = FIXED_LEFT(FIXED_MUL(FIXED_LEFT(x, zeros - 1), sqrt_half), 1);
  const int r = min(r_a, FIXED_LEFT(x, zeros_b));
  const int z = max(FIXED_LEFT(12 - zeros, 25) + quarter, FIXED_LEFT(12 - zeros_b, 25) - quarter);
  // log(r) as a quotient of polynomials of q = 2 (r - root)
  const int p = (int)(((uint)r + (uint)root + 1u) >> 1);
  const int q = (r - root) * 2, square = FIXED_MUL(q, q);
  const int above = FIXED_MUL(q, r) + FIXED_MUL(FIXED_MUL(q, square), 117049297);
  const int below =
      FIXED_MUL(p, 1057819769 + q + FIXED_MUL(127690142, square)) + FIXED_MUL(638450708, q);
  const int tail = FIXED_MUL(FIXED_SHIFT(above, 6), fixed_one_over(below));
  return FIXED_LEFT(FIXED_MUL(z, 1488522236) + tail, 1);
}
