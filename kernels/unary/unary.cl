// unary.cl - dst[i] = activation(OP(src[i]))
//
// Shapes    src, dst: the same, contiguous
// Launch    one work-item per 4 elements: global = ceil(count / 4), local any
// Macros    OP       0..13  0 identity, 1 abs, 2 neg, 3 exp, 4 log, 5 sqrt, 6 rsqrt, 7 square, 8 sin,
//                           9 cos, 10 floor, 11 ceil, 12 round, 13 sign
//           INTEGER  0|1    1: SRC_T and DST_T are the same integer type; OP 1, 2, 7 or 13
//           SRC_T    float|half|int|long  element type of src
//           DST_T    float|half|int|long  element type of dst
//           and those of common/activation.cl (no activation on integers) and common/result.cl
// Numerics  float arithmetic whatever the storage is; round: halves to even;
//           integers wrap
#include "common/activation.cl"
#include "common/result.cl"
#include "common/types.cl"

#define VALUE_T ARITH(DST_T)
#if SLICED
#define WRITE4(T, p, i, v) STORE4(T, p, i, v)
#else
#define WRITE4(T, p, i, v) STORE4_ALIGNED(T, p, i, v)
#endif

static inline VALUE_T unary_apply(VALUE_T x) {
#if OP == 0
  return x;
#elif OP == 2
  return -x;
#elif OP == 7
  return x * x;
#elif INTEGER
#if OP == 1
  return (VALUE_T)abs(x);
#elif OP == 13
  return x > 0 ? 1 : x < 0 ? -1 : 0;
#else
#error "OP is out of range for integers (1, 2, 7 or 13)"
#endif
#elif OP == 1
  return fabs(x);
#elif OP == 3
  return exp(x);
#elif OP == 4
  return log(x);
#elif OP == 5
  return sqrt(x);
#elif OP == 6
  return rsqrt(x);
#elif OP == 8
  return sin(x);
#elif OP == 9
  return cos(x);
#elif OP == 10
  return floor(x);
#elif OP == 11
  return ceil(x);
#elif OP == 12
  return rint(x);
#elif OP == 13
  return sign(x);
#else
#error "OP is out of range (0..13)"
#endif
}

__kernel void unary_elementwise(__global const SRC_T *src, RESULT_PARAM int count) {
  const int i = (int)get_global_id(0) * 4;
  if (i >= count) return;
#if !INTEGER
  if (i + 4 <= count && RESULT_RUNS_OF_4) {
    const float4 x = LOAD4_ALIGNED(SRC_T, src, i);
    const float4 y =
        (float4)(unary_apply(x.s0), unary_apply(x.s1), unary_apply(x.s2), unary_apply(x.s3));
    WRITE4(DST_T, dst, RESULT_OF(i), ACTIVATE(y));
    return;
  }
#endif
  for (int k = i; k < min(i + 4, count); ++k) {
    const VALUE_T y = unary_apply(LOAD(SRC_T, src, k));
    STORE(DST_T, dst, RESULT_OF(k), ACTIVATE(y));
  }
}
