// quotient.cl - division of many numbers by one that is known before
//
// QUOTIENT(n, mul, shift)  n / divisor for 0 <= n < 2^31; the launch has the divisor's mul and shift, mul is 0 where
//                          the divisor is 1
#define QUOTIENT(n, mul, shift) \
  ((mul) == 0 ? (n) : (int)(mul_hi((uint)(n), (uint)(mul)) >> (shift)))
