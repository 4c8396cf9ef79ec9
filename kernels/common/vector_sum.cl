// vector_sum.cl - the sum of a vector's elements, added pairwise
//
// sum_of8(v), sum_of16(v)  SUM_T, of vectors of 8 or 16
//
// Macros    SUM_T  float|int|long  element type of the vectors
#include "common/types.cl"

SUM_T sum_of8(CLGPU_CAT(SUM_T, 8) v) {
  const CLGPU_CAT(SUM_T, 4) half_sum = v.lo + v.hi;
  const CLGPU_CAT(SUM_T, 2) quarter_sum = half_sum.lo + half_sum.hi;
  return quarter_sum.x + quarter_sum.y;
}
SUM_T sum_of16(CLGPU_CAT(SUM_T, 16) v) { return sum_of8(v.lo + v.hi); }
