// float_pairs.cl - products of floats on NVIDIA's tensor cores: a float is a pair, the sum of two bfloat16
//                  numbers, and three products of these are almost that of two floats
//
// Only with MMA_TYPE 5 of common/mma.cl. A register has two bfloat16 numbers, the first in the low bits.
// Of an operand of common/mma.cl, two parts of K = 8 floats make one of 16 pairs, in the order of depth that
// both operands have: elements q and q + 4 of the first part are 2q and 2q + 1, those of the second follow 8
// further on.
//
// to_bfloats(low, high)      two floats, given by their bits, rounded to nearest even
// rests_of(low, high, both)  what these floats are more than the numbers of to_bfloats
// PAIRS_ADD(c, a, b0, b1)    c += a * b of 16 pairs' first or second numbers, c as in common/mma.cl
//
// Numerics  pairs leave 2^-17 of a float, and the product of two second numbers is left out, so a product is right
//           to some 2^-15, 2^-18 on average; the range is that of bfloat16 numbers, up to
//           3.39e38. An infinity gives NaN
#include "common/mma.cl"

uint to_bfloats(uint low, uint high) {
  uint both;
  __asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(as_float(low)), "f"(as_float(high)));
  return both;
}

uint rests_of(uint low, uint high, uint both) {
  const float rest_low = as_float(low) - as_float(both << 16);
  const float rest_high = as_float(high) - as_float(both & 0xFFFF0000u);
  return to_bfloats(as_uint(rest_low), as_uint(rest_high));
}

#define PAIRS_ADD(c, a, b0, b1)                                                                  \
  __asm volatile(                                                                                \
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, " \
      "{%8, %9}, {%0, %1, %2, %3};"                                                              \
      : "+f"((c).s0), "+f"((c).s1), "+f"((c).s2), "+f"((c).s3)                                   \
      : "r"((a).s0), "r"((a).s1), "r"((a).s2), "r"((a).s3), "r"(b0), "r"(b1))
