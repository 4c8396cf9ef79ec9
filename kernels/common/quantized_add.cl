// quantized_add.cl - the quantised sum of two quantised numbers, bit for bit as in TFLite's
// reference kernels; clgpu::ops::PairScaling makes the parameters
//
//   __kernel void f(..., QUANTIZED_PAIR_PARAMS) {
//     ... STORE(DST_T, dst, i, QUANTIZED_ADD(int, LOAD(A_T, a, i), LOAD(B_T, b, i)));
//
// QUANTIZED_PAIR_PARAMS   the parameters pair_...
// QUANTIZED_ADD(V, a, b)  the stored integer; V: int, int4, int8 or int16, the type of the stored
//                         integers a and b; QUANTIZED_SUB: their difference
// PAIR_SCALED_A(V, a)     a on the common scale; likewise PAIR_SCALED_B
// PAIR_RESULT(V, x)       x on the common scale as a stored integer; PAIR_STORED(V, x): x plus the
//                         zero point, clamped
#include "common/multiply.cl"
#include "common/types.cl"

#define QUANTIZED_PAIR_PARAMS                                                                      \
  int pair_left, int pair_a_zero, int pair_a_multiplier, int pair_a_shift, int pair_b_zero,        \
      int pair_b_multiplier, int pair_b_shift, int pair_multiplier, int pair_shift, int pair_zero, \
      int pair_low, int pair_high

#define PAIR_REQUANTIZE(V, x, m, shift) CLGPU_CAT(requantize_, V)(x, (V)(m), (V)(shift))
#define PAIR_SCALED_A(V, a) \
  PAIR_REQUANTIZE(V, ((a) - pair_a_zero) << pair_left, pair_a_multiplier, pair_a_shift)
#define PAIR_SCALED_B(V, b) \
  PAIR_REQUANTIZE(V, ((b) - pair_b_zero) << pair_left, pair_b_multiplier, pair_b_shift)
#define PAIR_STORED(V, x) clamp((x) + pair_zero, (V)(pair_low), (V)(pair_high))
#define PAIR_RESULT(V, x) PAIR_STORED(V, PAIR_REQUANTIZE(V, x, pair_multiplier, pair_shift))
#define QUANTIZED_ADD(V, a, b) PAIR_RESULT(V, PAIR_SCALED_A(V, a) + PAIR_SCALED_B(V, b))
#define QUANTIZED_SUB(V, a, b) PAIR_RESULT(V, PAIR_SCALED_A(V, a) - PAIR_SCALED_B(V, b))
