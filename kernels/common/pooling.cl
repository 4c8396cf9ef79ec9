// pooling.cl - the three ways to pool a window: POOL_START, POOL_ADD and POOL_END on floats or vectors
//
// A window is summed up by `x = POOL_ADD(x, element)` from POOL_START on, partial results are joined
// by POOL_JOIN, and POOL_END turns the result of `count` elements (padding left out) into the value.
//
// Macros    KIND  0..2  0 maximum, 1 average, 2 root of the mean square
#ifndef KIND
#error "KIND is required (0..2)"
#endif

#if KIND == 0
#define POOL_START (-FLT_MAX)
#define POOL_ADD(sum, x) fmax(sum, x)
#define POOL_JOIN(a, b) fmax(a, b)
#define POOL_END(sum, count) (sum)
#elif KIND == 1
#define POOL_START 0.0f
#define POOL_ADD(sum, x) ((sum) + (x))
#define POOL_JOIN(a, b) ((a) + (b))
#define POOL_END(sum, count) ((sum) / (float)(count))
#elif KIND == 2
#define POOL_START 0.0f
#define POOL_ADD(sum, x) ((sum) + (x) * (x))
#define POOL_JOIN(a, b) ((a) + (b))
#define POOL_END(sum, count) sqrt((sum) / (float)(count))
#else
#error "KIND is out of range (0..2)"
#endif
