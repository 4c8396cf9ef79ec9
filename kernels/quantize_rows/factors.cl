// factors.cl - scale and zero point of a row of floats, from its least and greatest elements
//
//   row_factors_t f = row_factors(least, greatest);
//
// Macros    ASYMMETRIC  0|1  0: -127 .. 127 represent -range .. range; 1: -128 .. 127 represent least .. greatest
// Numerics  as in TFLite's hybrid kernels; pairs of floats (48 bits) replace their doubles and are
//           rounded to float or to an integer

typedef struct {
  float scale, inverse;
  int zero;
} row_factors_t;

// a / b, correctly rounded; OpenCL allows an error of 2.5 units in the last place.
static inline float row_quotient(float a, float b) {
  const float q = a / b;
  return q + fma(-q, b, a) / b;
}

static inline row_factors_t row_factors(float least, float greatest) {
  row_factors_t f = {1.0f, 0.0f, 0};
#if ASYMMETRIC
  const float low = min(least, 0.0f), high = max(greatest, 0.0f);
  if (low == high) return f;
  // high - low, and a 255th of it, as sums of two floats.
  const float width = high - low, part = width - high,
              width_rest = (high - (width - part)) - (low + part);
  const float step = width / 255.0f;
  const float step_rest = (fma(-step, 255.0f, width) + width_rest) / 255.0f;
  f.scale = step + step_rest;
  f.inverse = row_quotient(1.0f, f.scale);
  const float rest = step_rest - (f.scale - step);
  // The distance of the zero point from -128 is that of 0 from low, or its distance from 127 that of 0 from high.
  const bool from_low = -low < high;
  const float bound = from_low ? low : high;
  const float steps = bound / f.scale;
  const float steps_rest = (fma(-steps, f.scale, bound) - steps * rest) / f.scale;
  const float from = from_low ? -128.0f : 127.0f;
  const float whole = round(from - steps);
  const float fraction = ((from - whole) - steps) - steps_rest;
  const bool positive = whole + fraction >= 0.0f;
  const int up = fraction > 0.5f || (positive && fraction == 0.5f) ? 1 : 0;
  const int down = fraction < -0.5f || (!positive && fraction == -0.5f) ? 1 : 0;
  f.zero = clamp((int)whole + up - down, -128, 127);
#else
  const float range = max(fabs(least), fabs(greatest));
  if (range == 0.0f) return f;
  f.scale = row_quotient(range, 127.0f);
  f.inverse = row_quotient(127.0f, range);
#endif
  return f;
}
