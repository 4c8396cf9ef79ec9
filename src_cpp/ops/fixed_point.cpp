#include "ops/fixed_point.hpp"

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

std::optional<int> log2_of(float scale) {
  const float exact = std::log(scale) * (1.0F / std::log(2.0F));
  const float rounded = std::round(exact);
  if (std::abs(exact - rounded) >= 1e-3F) return std::nullopt;
  return static_cast<int>(rounded);
}

}  // namespace clgpu::ops
