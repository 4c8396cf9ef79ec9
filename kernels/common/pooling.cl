// pooling.cl - the three kinds of pooling: POOL_START, POOL_ADD and FINISH_POOL on numbers or vectors
//
// `x = POOL_ADD(x, element)` accumulates a window, starting with POOL_START, POOL_JOIN joins partial
// results, and FINISH_POOL turns the result of `count` elements (without padding) into the value.
//
//   #define VALUE_T POOL_T  // or a vector
//   __kernel void f(__global const SRC_T *src, RESULT_PARAM POOL_RANGE_PARAM int count) {
//
// Macros    KIND       0..2  0 maximum, 1 average, 2 root of the mean square (floats only)
//           QUANTIZED  0|1   1: integers; averages are rounded, halves away from zero; results are clamped
//           and those of common/activation.cl
#include "common/activation.cl"

#if QUANTIZED
#define POOL_T int
#define POOL_RANGE_PARAM int dst_low, int dst_high,
#define FINISH_POOL(sum, count) clamp(POOL_END(sum, count), (VALUE_T)(dst_low), (VALUE_T)(dst_high))
#else
#define POOL_T float
#define POOL_RANGE_PARAM
#define FINISH_POOL(sum, count) ACTIVATE(POOL_END(sum, count))
#endif

#if KIND == 0
#if QUANTIZED
#define POOL_START INT_MIN
#define POOL_ADD(sum, x) max(sum, x)
#else
#define POOL_START (-FLT_MAX)
#define POOL_ADD(sum, x) fmax(sum, x)
#endif
#define POOL_JOIN(a, b) POOL_ADD(a, b)
#define POOL_END(sum, count) (sum)
#elif KIND == 1
#define POOL_START 0
#define POOL_ADD(sum, x) ((sum) + (x))
#define POOL_JOIN(a, b) ((a) + (b))
#if QUANTIZED
#define POOL_HALF(sum, half) ((sum) > 0 ? (VALUE_T)(half) : (VALUE_T)(-(half)))
#define POOL_END(sum, count) (((sum) + POOL_HALF(sum, (count) / 2)) / (VALUE_T)(count))
#else
#define POOL_END(sum, count) ((sum) / (float)(count))
#endif
#elif KIND == 2
#define POOL_START 0
#define POOL_ADD(sum, x) ((sum) + (x) * (x))
#define POOL_JOIN(a, b) ((a) + (b))
#define POOL_END(sum, count) sqrt((sum) / (float)(count))
#else
#error "KIND is out of range (0..2)"
#endif
