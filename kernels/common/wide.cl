// wide.cl - sums of two floats with about 46 bits: what reference kernels compute in double
//
// A wide number is a float2: x is the nearest float, y the rest. Devices need not have double.
// Results are rounded as by double arithmetic in all but a few of 1000 cases.
#include "common/bounds.cl"
#pragma OPENCL FP_CONTRACT OFF

static inline float2 wide_sum(float a, float b) {
  const float sum = a + b, part = sum - a;
  return (float2)(sum, (a - (sum - part)) + (b - part));
}

// |a| is not less than |b|.
static inline float2 wide_of(float a, float b) {
  const float sum = a + b;
  return (float2)(sum, b - (sum - a));
}

static inline float2 wide_add(float2 a, float2 b) {
  const float2 sum = wide_sum(a.x, b.x);
  return wide_of(sum.x, sum.y + (a.y + b.y));
}

static inline float2 wide_mul(float2 a, float2 b) {
  const float product = a.x * b.x;
  const float rest = fma(a.x, b.x, -product);
  return wide_of(product, rest + (a.x * b.y + a.y * b.x));
}

static inline float2 wide_quotient(float a, float b) {
  const float quotient = a / b;
  return wide_of(quotient, fma(-quotient, b, a) / b);
}

// a / b, rounded to nearest even where the device's division is not.
static inline float exact_quotient(float a, float b) {
  const float quotient = a / b;
  const float rest = fma(-quotient, b, a) / b;
  return isfinite(rest) ? quotient + rest : quotient;
}

// factor * exp(x) * 2^power. Arguments beyond those of floats give 0 or infinity, as they should.
static inline float scaled_exp(float2 x, float factor, int power) {
  const bool is_far = !(fabs(x.x) <= 200.0f);
  const float top = WITHIN(x.x, -200.0f, 200.0f);
  const float turns = rint(top * 1.442695041f);
  const float2 ln2 = (float2)(0.693147182464599609375f, -1.904654323148236017e-9f);
  const float2 rest =
      wide_add((float2)(top, is_far ? 0.0f : x.y), wide_mul(ln2, (float2)(-turns, 0.0f)));
  // exp(rest / 16) - 1 from its series, then four squarings.
  const float2 part = rest * 0.0625f;
  const float2 square = wide_mul(part, part);
  const float cube = part.x * square.x * (1.0f / 6 + part.x * (1.0f / 24 + part.x / 120));
  float2 less_one = wide_add(part, wide_of(0.5f * square.x, 0.5f * square.y + cube));
  for (int i = 0; i < 4; ++i) less_one = wide_add(2.0f * less_one, wide_mul(less_one, less_one));
  const float2 power_of_e = wide_add((float2)(1.0f, 0.0f), less_one);
  return ldexp(wide_mul(power_of_e, (float2)(factor, 0.0f)).x, (int)turns + power);
}
