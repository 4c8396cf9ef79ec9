// binary.cl - dst[i] = activation(a[i] OP b[i]), a and b broadcast to the shape of dst
//
// Shapes    a, b: up to rank 6, contiguous, broadcast as in numpy; dst: their common shape
// Launch    one work-item per WIDTH elements: global = ceil(elements / WIDTH), local any
// Macros    OP       0..12             0 add, 1 sub, 2 mul, 3 div, 4 maximum, 5 minimum, 6 pow,
//                                      7 squared difference, 8 floor div, 9 floor mod, 10 prelu,
//                                      11 atan2, 12 a * b, but 0 where b is 0, even if a is NaN
//           WIDTH    1|4               elements of a work-item; 4 needs RANK 1 or a last axis of 4k;
//                                      the runs of a slice are multiples of 4; 1 for short and char
//           INTEGER  0|1               1: all of A_T, B_T, DST_T are the same integer type
//           A_T      float|half|int|long|short|char  element type of a
//           B_T      float|half|int|long|short|char  element type of b
//           DST_T    float|half|int|long|short|char  element type of dst
//           and those of common/broadcast.cl, common/activation.cl (ACT 0..3 on integers) and
//           common/result.cl
// Numerics  float arithmetic whatever the storage is; integers wrap, short and char before the
//           activation; division truncates as in C and
//           by zero gives 0; floor div is the floor of the exact quotient
#include "common/activation.cl"
#include "common/broadcast.cl"
#include "common/result.cl"
#include "common/types.cl"

#define VALUE_T ARITH(DST_T)
#define VALUE4_T CLGPU_CAT(VALUE_T, 4)
#if INTEGER
#define WRAPPED(x) ((VALUE_T)(DST_T)(x))
#define READ4(T, p, i) vload4(0, (p) + (i))
#define WRITE4(T, p, i, v) vstore4(v, 0, (p) + (i))
#if ACT == 0
#define FINISH(x) (x)
#elif ACT == 1
#define FINISH(x) max(x, (VALUE_T)0)
#elif ACT == 2
#define FINISH(x) clamp(x, (VALUE_T) - 1, (VALUE_T)1)
#elif ACT == 3
#define FINISH(x) clamp(x, (VALUE_T)0, (VALUE_T)6)
#else
#error "ACT is out of range for integers (0..3)"
#endif
#else
#define WRAPPED(x) (x)
#if RANK == 1  // else the last axis need not begin at a multiple of 4
#define READ4(T, p, i) LOAD4_ALIGNED(T, p, i)
#else
#define READ4(T, p, i) LOAD4(T, p, i)
#endif
#if SLICED
#define WRITE4(T, p, i, v) STORE4(T, p, i, v)
#else
#define WRITE4(T, p, i, v) STORE4_ALIGNED(T, p, i, v)
#endif
#define FINISH(x) ACTIVATE(x)
#endif

static inline VALUE_T binary_apply(VALUE_T a, VALUE_T b) {
#if OP == 0
  return a + b;
#elif OP == 1
  return a - b;
#elif OP == 2
  return a * b;
#elif OP == 7
  return (a - b) * (a - b);
#elif INTEGER
#if OP == 3
  return b == 0 ? 0 : b == -1 ? -a : a / b;
#elif OP == 4
  return max(a, b);
#elif OP == 5
  return min(a, b);
#elif OP == 6
  VALUE_T result = b < 0 ? 0 : 1;
  for (; b > 0; b /= 2) {
    if (b % 2 == 1) result *= a;
    a *= a;
  }
  return result;
#elif OP == 8
  if (b == 0 || b == -1) return b == 0 ? 0 : -a;
  const VALUE_T q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
#elif OP == 9
  if (b == 0 || b == -1) return 0;
  const VALUE_T r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
#else
#error "OP is out of range for integers (0..9)"
#endif
#else
#if OP == 3
  return a / b;
#elif OP == 4
  return a > b ? a : b;  // like the reference: a NaN in b stays, one in a does not
#elif OP == 5
  return a < b ? a : b;
#elif OP == 6
  return pow(a, b);
#elif OP == 8
  // a / b may be off by some units in the last place; the remainder tells in which direction.
  const float q = floor(a / b);
  if (!isfinite(q)) return q;
  const float r = fma(-q, b, a);
  if (r != 0.0f && (r < 0.0f) != (b < 0.0f)) return q - 1.0f;
  return fabs(r) >= fabs(b) ? q + 1.0f : q;
#elif OP == 9
  const float r = fmod(a, b);
  return (r != 0.0f && (r < 0.0f) != (b < 0.0f)) ? r + b : r;
#elif OP == 10
  return a >= 0.0f ? a : a * b;
#elif OP == 11
  return atan2(a, b);
#elif OP == 12
  return b == 0.0f ? 0.0f : a * b;
#else
#error "OP is out of range (0..12)"
#endif
#endif
}

__kernel void binary_elementwise(__global const A_T *a, __global const B_T *b,
                                 RESULT_PARAM BROADCAST_DIMS, BROADCAST_STRIDES(a),
                                 BROADCAST_STRIDES(b)) {
  const int i = (int)get_global_id(0) * WIDTH;
  const int count = BROADCAST_COUNT;
  if (i >= count) return;
  BROADCAST_COORDS(i);
  a += BROADCAST_AT(a);
  b += BROADCAST_AT(b);
#if WIDTH == 4
  if (i + 4 <= count) {
    const VALUE4_T x = BROADCAST_STEP(a) ? READ4(A_T, a, 0) : (VALUE4_T)(LOAD(A_T, a, 0));
    const VALUE4_T y = BROADCAST_STEP(b) ? READ4(B_T, b, 0) : (VALUE4_T)(LOAD(B_T, b, 0));
    const VALUE4_T z = (VALUE4_T)(binary_apply(x.s0, y.s0), binary_apply(x.s1, y.s1),
                                  binary_apply(x.s2, y.s2), binary_apply(x.s3, y.s3));
    WRITE4(DST_T, dst, RESULT_OF(i), FINISH(z));
    return;
  }
#endif
  for (int k = 0; k < WIDTH && i + k < count; ++k) {
    const VALUE_T z =
        binary_apply(LOAD(A_T, a, k * BROADCAST_STEP(a)), LOAD(B_T, b, k * BROADCAST_STEP(b)));
    STORE(DST_T, dst, RESULT_OF(i + k), FINISH(WRAPPED(z)));
  }
}
