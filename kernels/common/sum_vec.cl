// sum_vec.cl - the sum of the elements of a vector of common/vector.cl, added pairwise
//
// SUM_OF_VEC(v)  SUM_T, of a VEC
//
// Macros    those of common/vector.cl (VW 1, 4 or 16)
#include "common/vector.cl"

#if VW == 1
#define SUM_OF_VEC(v) (v)
#elif VW == 4
#define SUM_OF_VEC(v) (((v).x + (v).y) + ((v).z + (v).w))
#else
#include "common/vector_sum.cl"
#define SUM_OF_VEC(v) sum_of16(v)
#endif
