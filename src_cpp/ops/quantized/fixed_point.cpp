#include "ops/quantized/fixed_point.hpp"

#include <cmath>

namespace clgpu::ops {

Multiplier inverse_square_root(std::int32_t x) {
  if (x <= 1) return {std::numeric_limits<std::int32_t>::max(), 0};
  int right = 11;
  for (; x >= 1 << 29; ++right) x /= 4;
  for (; x < 1 << 27; --right) x *= 4;
  // Newton's iteration for the root of x * 2^-29 in Q3, from 1.
  const auto mul = doubled_high<std::int32_t>;
  const std::int32_t input = x >> 1, half_input = shifted(input, 1);
  const std::int32_t half_three = (1 << 28) + (1 << 27);
  std::int32_t y = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const std::int32_t cube = shifted_left(mul(mul(y, y), y), 6);
    y = shifted_left(mul(half_three, y) - mul(half_input, cube), 3);
  }
  y = mul(y, 1518500250);  // sqrt(1/2) in Q0
  if (right < 0) {
    y <<= -right;
    right = 0;
  }
  return {y, -right};
}

std::int32_t exp_of_negative(std::int32_t x) {
  if (x == 0) return std::numeric_limits<std::int32_t>::max();
  const auto mul = doubled_high<std::int32_t>;
  // exp of the part of x in [-1/4, 0): Taylor's series around -1/8
  constexpr std::int32_t kQuarter = 1 << 24;
  const std::int32_t part = (x & (kQuarter - 1)) - kQuarter;
  const std::int32_t y = shifted_left(part, 5) + (1 << 28);
  const std::int32_t y2 = mul(y, y), y3 = mul(y2, y), y4 = mul(y2, y2);
  const std::int32_t tail = shifted(mul(shifted(y4, 2) + y3, 715827883) + y2, 1);
  std::int32_t result = 1895147668 + mul(1895147668, y + tail);
  // exp(-2^i) of the rest's bits, i from -2 to 4
  constexpr std::int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308,
                                      39332535,   720401,     242};
  const std::int32_t rest = part - x;
  for (int i = 0; i < 7; ++i) {
    if ((rest & (kQuarter << i)) != 0) result = mul(result, kPowers[i]);
  }
  return result;
}

std::optional<int> log2_of(float scale) {
  const float exact = std::log(scale) * (1.0F / std::log(2.0F));
  const float rounded = std::round(exact);
  if (std::abs(exact - rounded) >= 1e-3F) return std::nullopt;
  return static_cast<int>(rounded);
}

}  // namespace clgpu::ops
