// zero.cl - the zero point of the weights; few models have one
//
//   __kernel void f(..., int depth WEIGHTS_ZERO_PARAM) { ... WEIGHT(LOAD(WEIGHTS_T, weights, k)) ...
//
// WEIGHT(w)  the stored weight w less the zero point: SUM_T
//
// Macros    WEIGHTS_ZERO  0|1             1: there is one
//           SUM_T         float|int|long  type of sums

#if WEIGHTS_ZERO
#define WEIGHTS_ZERO_PARAM , int weights_zero
#define WEIGHT(w) (SUM_T)((w) - weights_zero)
#else
#define WEIGHTS_ZERO_PARAM
#define WEIGHT(w) (SUM_T)(w)
#endif
