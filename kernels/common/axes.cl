// axes.cl - UNRAVEL(flat, d1, ..., d5) declares i0..i5, the coordinates of `flat` in [d0, ..., d5]
//
// Few tensors need six divisions, so only the last AXES sizes may differ from 1.
//
// Macros    AXES    2|4|6    coordinates that are computed; those before them are 0

#if AXES == 2
#define UNRAVEL(flat, d1, d2, d3, d4, d5)   \
  const int i0 = 0, i1 = 0, i2 = 0, i3 = 0; \
  const int i4 = (flat) / (d5);             \
  const int i5 = (flat) - i4 * (d5)
#elif AXES == 4
#define UNRAVEL(flat, d1, d2, d3, d4, d5) \
  int rest_ = (flat);                     \
  const int i0 = 0, i1 = 0;               \
  const int i5 = rest_ % (d5);            \
  rest_ /= (d5);                          \
  const int i4 = rest_ % (d4);            \
  rest_ /= (d4);                          \
  const int i3 = rest_ % (d3);            \
  const int i2 = rest_ / (d3)
#else
#include "common/index.cl"
#define UNRAVEL(flat, d1, d2, d3, d4, d5) UNRAVEL6(flat, d1, d2, d3, d4, d5)
#endif
