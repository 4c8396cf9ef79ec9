// Conversion between float and IEEE 754 binary16, on the host, without hardware support.
#pragma once

#include <cstdint>
#include <cstring>

namespace clgpu {

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  std::uint32_t bits;
  if (exponent == 0x1F) {
    bits = sign | 0x7F800000U | (mantissa << 13);
  } else if (exponent != 0) {
    bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
  } else {
    // Subnormal: mantissa * 2^-24 is exact in float.
    const float value = static_cast<float>(mantissa) * 5.9604644775390625e-8F;
    std::memcpy(&bits, &value, sizeof bits);
    bits |= sign;
  }
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

/// Rounds to nearest, ties to even; overflows to infinity.
inline std::uint16_t float_to_half(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  bits &= 0x7FFFFFFFU;
  if (bits > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);  // NaN
  if (bits >= 0x477FF000U)
    return static_cast<std::uint16_t>(sign | 0x7C00U);  // rounds beyond 65504
  if (bits < 0x38800000U) {
    // Below the smallest normal half: adding 0.5 aligns the last kept bit, so the FPU rounds for
    // us.
    float magnitude;
    std::memcpy(&magnitude, &bits, sizeof magnitude);
    magnitude += 0.5F;
    std::uint32_t shifted;
    std::memcpy(&shifted, &magnitude, sizeof shifted);
    return static_cast<std::uint16_t>(sign | (shifted - 0x3F000000U));
  }
  const std::uint32_t odd = (bits >> 13) & 1U;
  bits += 0xC8000000U + 0xFFFU + odd;  // rebias the exponent by -112 and round
  return static_cast<std::uint16_t>(sign | (bits >> 13));
}

}  // namespace clgpu
