// steps.cl - floats as quantised integers: round(x / scale) + zero point, not yet clamped to a type
//
//   steps_of(x, scale, zero), steps_of4, steps_of8, steps_of16   ints far beyond the range of every type of 16
//                                                                bits at most
//
// Numerics  the quotient is correctly rounded, halves are rounded away from zero, as on the CPU

// OpenCL allows an error of 2.5 units in the last place for a / b, enough to miss a tie between two steps.
// One Newton step on the exact remainder gives the correctly rounded quotient.
// The bound keeps the sum with zero from overflowing.
static inline int steps_of(float x, float scale, int zero) {
  const float q = x / scale;
  const float exact = isfinite(q) ? q + fma(-q, scale, x) / scale : q;
  return (int)clamp(round(exact), -1048576.0f, 1048576.0f) + zero;
}
#define STEPS_OF(N)                                                             \
  static inline int##N steps_of##N(float##N x, float scale, int zero) {         \
    const float##N q = x / scale;                                               \
    const float##N better = q + fma(-q, (float##N)(scale), x) / scale;          \
    const float##N exact = isfinite(q) ? better : q;                            \
    return convert_int##N(clamp(round(exact), -1048576.0f, 1048576.0f)) + zero; \
  }
STEPS_OF(4)
STEPS_OF(8)
STEPS_OF(16)
