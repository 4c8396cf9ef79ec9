// quantized.cl - dst[i] = a[i] OP b[i] of quantised integers, a and b broadcast to the shape of dst
//
// Shapes    a, b: up to rank 6, contiguous, broadcast as in numpy; dst: their common shape
// Launch    one work-item per WIDTH elements: global = ceil(elements / WIDTH), local any
// Macros    OP     0..10           0 add, 1 sub, 2 mul, 3 div, 4 maximum, 5 minimum, 7 squared
//                                  difference, 10 prelu
//           WIDTH  1|4|16          elements of a work-item; 1 for div; more than 1 needs RANK 1 or a last axis that
//                                  it divides; the runs of a slice begin at multiples of it
//           SHIFTS 0|1             1: scales are powers of two, operands are only shifted (0 add, 1 sub)
//           A_T    char|uchar|short  element type of a
//           B_T    char|uchar|short  element type of b
//           DST_T  char|uchar|short  element type of dst
//           and those of common/broadcast.cl and common/result.cl
// Numerics  bit for bit as TFLite's reference kernels; maximum and minimum compare the stored integers,
//           whatever their scales are; division by zero divides by one
#include "common/broadcast.cl"
#include "common/fixed_point.cl"
#include "common/quantized_add.cl"
#include "common/result.cl"
#include "common/types.cl"

// x / 2^-shift of few bits, halves away from zero; also for vectors
#define SHIFTED(x, shift) \
  (((x) + ((1 << -(shift)) >> 1) + (((x) >> 31) & ((shift) >> 31))) >> -(shift))

#if SHIFTS
#if OP == 0
#define APPLY(V, a, b) PAIR_STORED(V, SHIFTED(a, pair_a_shift) + SHIFTED(b, pair_b_shift))
#else
#define APPLY(V, a, b) PAIR_STORED(V, SHIFTED(a, pair_a_shift) - SHIFTED(b, pair_b_shift))
#endif
#elif OP == 0
#define APPLY(V, a, b) QUANTIZED_ADD(V, a, b)
#elif OP == 1
#define APPLY(V, a, b) QUANTIZED_SUB(V, a, b)
#elif OP == 2
#define APPLY(V, a, b) PAIR_RESULT(V, ((a) - pair_a_zero) * ((b) - pair_b_zero))
#elif OP == 3
#define APPLY(V, a, b) \
  PAIR_STORED(V, quotient(a - pair_a_zero, b - pair_b_zero, pair_multiplier, pair_shift))
static inline int quotient(int a, int b, int multiplier, int shift) {
  if (b < 0) {
    a = -a;
    b = -b;
  }
  int power;
  const int inverse = fixed_reciprocal(max(b, 1), &power);
  const int left = clz(a ^ (a >> 31)) - 1;
  const int exact = FIXED_MUL((int)((uint)a << left), inverse);
  return FIXED_SHIFT(FIXED_MUL(exact, multiplier), power + left - shift);
}
#elif OP == 4
#define APPLY(V, a, b) max(a, b)
#elif OP == 5
#define APPLY(V, a, b) min(a, b)
#elif OP == 7
#define SQUARE(x) ((x) * (x))
#define APPLY(V, a, b) PAIR_RESULT(V, SQUARE(PAIR_SCALED_A(V, a) - PAIR_SCALED_B(V, b)))
#elif OP == 10
#define NEGATIVE(V, a, b) \
  PAIR_REQUANTIZE(V, ((a) - pair_a_zero) * ((b) - pair_b_zero), pair_multiplier, pair_shift)
#define APPLY(V, a, b) PAIR_STORED(V, (a) >= pair_a_zero ? PAIR_SCALED_A(V, a) : NEGATIVE(V, a, b))
#else
#error "OP is out of range (0..10)"
#endif

#if WIDTH > 1
#define VEC CLGPU_CAT(int, WIDTH)
#define READ(T, p) CLGPU_CAT(convert_int, WIDTH)(*(__global const CLGPU_CAT(T, WIDTH) *)(p))
#define WRITE(i, v) CLGPU_CAT(CLGPU_CAT(STORE, WIDTH), _ALIGNED)(DST_T, dst, i, v)
#else
#define VEC int
#endif

// Do not build vectors from vectors: Intel's compiler gathers them from single integers.
__kernel __attribute__((vec_type_hint(VEC))) void binary_quantized(
    __global const A_T *a, __global const B_T *b, RESULT_PARAM QUANTIZED_PAIR_PARAMS,
    BROADCAST_DIMS, BROADCAST_STRIDES(a), BROADCAST_STRIDES(b)) {
  const int i = (int)get_global_id(0) * WIDTH;
  const int count = BROADCAST_COUNT;
  if (i >= count) return;
  BROADCAST_COORDS(i);
  a += BROADCAST_AT(a);
  b += BROADCAST_AT(b);
#if WIDTH > 1
  if (i + WIDTH <= count) {
    const VEC x = BROADCAST_STEP(a) ? READ(A_T, a) : (VEC)((int)*a);
    const VEC y = BROADCAST_STEP(b) ? READ(B_T, b) : (VEC)((int)*b);
    WRITE(RESULT_OF(i), APPLY(VEC, x, y));
    return;
  }
#endif
  for (int k = 0; k < WIDTH && i + k < count; ++k) {
    const int x = a[k * BROADCAST_STEP(a)], y = b[k * BROADCAST_STEP(b)];
    STORE(DST_T, dst, RESULT_OF(i + k), APPLY(int, x, y));
  }
}
