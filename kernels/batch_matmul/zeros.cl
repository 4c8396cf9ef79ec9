// zeros.cl - the zero points of integers, if there are any
//
// X_VALUE(v), Y_VALUE(v)  v, an element or a vector of x (y), less the zero point
//
// Macros    ZEROS  0|1             1: there are arguments x_zero, y_zero
//           SUM_T  float|int|long  type of sums

#if ZEROS
#define ZERO_PARAMETERS , int x_zero, int y_zero
#define X_VALUE(v) ((v) - (SUM_T)x_zero)
#define Y_VALUE(v) ((v) - (SUM_T)y_zero)
#else
#define ZERO_PARAMETERS
#define X_VALUE(v) (v)
#define Y_VALUE(v) (v)
#endif
