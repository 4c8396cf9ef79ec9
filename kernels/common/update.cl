// update.cl - where an update lies in the tensor of which it replaces a part
//
// Macros    INDEX_T  int|long  element of start
#include "common/types.cl"

// Distance of place i on an axis of d units from the first of u that are replaced. Only the axes
// from 6 - rank on have an element of start.
static inline int place_in_update(__global const INDEX_T *start, int rank, int axis, int i, int d,
                                  int u) {
  const int k = axis - (6 - rank);
  if (k < 0) return 0;
  const ARITH(INDEX_T) wanted = LOAD(INDEX_T, start, k);
  const int most = d - u;
  const int first = wanted < 0 ? 0 : wanted > most ? most : (int)wanted;
  return i - first;
}
