// predicate.cl - a launch that runs only if an element of a tensor is not 0
//
// kernel/sources.cpp writes this before the file of such a launch, PREDICATE_PARAMETER before the parameters of
// each of its kernels, and PREDICATE_CHECK at the beginning of their bodies. All work-items read the same
// element, so no work-group is left half in front of a barrier. NaN is not 0: such a launch runs.
//
// Macros    PREDICATE_T  float|half|int|long|short|char|uchar  element type of the predicate
#include "common/types.cl"

#define PREDICATE_PARAMETER __global const PREDICATE_T *predicate,
#define PREDICATE_CHECK \
  if (LOAD(PREDICATE_T, predicate, 0) == 0) return;
