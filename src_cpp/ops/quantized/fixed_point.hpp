// Fixed-point arithmetic of TFLite's reference kernels, on the host: for look-up tables. The
// version for devices is kernels/common/fixed_point.cl.
#pragma once

#include <cstdint>
#include <limits>

#include "ops/quantized/quantized.hpp"

namespace clgpu::ops {

/// a * b / 2^(bits - 1), rounded with halves up, for integers of 16 or 32 bits; saturates.
template <class T>
T doubled_high(T a, T b) {
  using Wide = std::int64_t;
  constexpr T kLeast = std::numeric_limits<T>::min();
  if (a == kLeast && b == kLeast) return std::numeric_limits<T>::max();
  constexpr Wide kUnit = Wide{1} << (8 * sizeof(T) - 1);
  const Wide product = Wide{a} * Wide{b};
  return static_cast<T>((product + (product >= 0 ? kUnit / 2 : 1 - kUnit / 2)) / kUnit);
}

/// x / 2^n, rounded with halves away from zero, 0 <= n < 64. If n exceeds the bits of T, the result
/// is that of the reference kernels: 1 for numbers that are not negative.
template <class T>
T shifted(T x, int n) {
  const T mask = static_cast<T>((std::uint64_t{1} << n) - 1);
  const int threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return static_cast<T>((x >> (n & 31)) + (static_cast<T>(x & mask) > threshold ? 1 : 0));
}

/// x shifted to the left, as a saturated integer of 16 or 32 bits.
template <class T>
T shifted_left(T x, int n) {
  const std::int64_t value = static_cast<std::int64_t>(x) * (std::int64_t{1} << n);
  if (value > std::numeric_limits<T>::max()) return std::numeric_limits<T>::max();
  return value < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min()
                                               : static_cast<T>(value);
}

/// x * m, as in kernels/common/requantize.cl.
inline std::int32_t rescaled(std::int32_t x, Multiplier m) {
  const int left = m.shift > 0 ? m.shift : 0;
  const auto y = static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << left);
  const auto value = static_cast<std::int32_t>(m.value);
  return shifted(doubled_high(y, value), m.shift > 0 ? 0 : -m.shift);
}

/// 1 / sqrt(x) of an integer x >= 0; for 0 the result is that of 1.
Multiplier inverse_square_root(std::int32_t x);

/// exp(x) in Q0 of an x <= 0 in Q5: x represents x * 2^-26.
std::int32_t exp_of_negative(std::int32_t x);

/// The logarithm of a scale that is nearly a power of two, in the arithmetic of the reference
/// kernels.
std::optional<int> log2_of(float scale);

}  // namespace clgpu::ops
