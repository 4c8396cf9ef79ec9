// predicate.cl - a launch that runs only if an element of a tensor is not 0
//
// kernel/sources.cpp writes this before the file of such a launch, PREDICATE_PARAMETERS before the parameters of
// each of its kernels, and PREDICATE_CHECK at the beginning of their bodies. All work-items read the same
// element, so no work-group is left half in front of a barrier. NaN is not 0: such a launch runs.
//
// Macros    PREDICATE_T  float|half|int|long|short|char|uchar  element type of the predicate
#include "common/types.cl"

#define PREDICATE_PARAMETERS __global const PREDICATE_T *predicate, const int predicate_at,
#define PREDICATE_CHECK \
  if (LOAD(PREDICATE_T, predicate, predicate_at) == 0) return;
