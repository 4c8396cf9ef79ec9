// zero.cl - the zero point of the weights, which few models have
//
//   __kernel void f(..., int depth WEIGHTS_ZERO_PARAM) { ... WEIGHT(LOAD(WEIGHTS_T, weights, k)) ...
//
// WEIGHT(w)  what the stored weight w stands for, but for the scale: SUM_T
//
// Macros    WEIGHTS_ZERO  0|1  there is one
#ifndef WEIGHTS_ZERO
#error "WEIGHTS_ZERO is required (0 or 1)"
#endif
#ifndef SUM_T
#error "SUM_T is required (float, int or long)"
#endif

#if WEIGHTS_ZERO
#define WEIGHTS_ZERO_PARAM , int weights_zero
#define WEIGHT(w) (SUM_T)((w) - weights_zero)
#else
#define WEIGHTS_ZERO_PARAM
#define WEIGHT(w) (SUM_T)(w)
#endif
