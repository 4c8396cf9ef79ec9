// Conversion between float and bfloat16, the upper half of a float, on the host.
#pragma once

#include <cstdint>
#include <cstring>

namespace clgpu {

inline float bfloat_to_float(std::uint16_t bfloat) {
  const std::uint32_t bits = std::uint32_t{bfloat} << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

/// Rounds to nearest, ties to even; a NaN becomes the quiet one of its sign, as in the runtimes.
inline std::uint16_t float_to_bfloat(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U)
    return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | 0x7FC0U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace clgpu
