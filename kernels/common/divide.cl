// divide.cl - division as exact as the host's, for results that are rounded to whole numbers next
//
// OpenCL lets a / b be off by 2.5 units in the last place: enough to turn floor(6 / 3) into 1. One
// Newton step on the exact remainder gives the correctly rounded quotient.
static inline float divide_exactly(float a, float b) {
  const float q = a / b;
  return isfinite(q) ? q + fma(-q, b, a) / b : q;
}
