#include "ir/tensor.hpp"

#include <algorithm>
#include <cmath>

#include "base/bfloat.hpp"

namespace clgpu::ir {

bool Constant::fits_half() const {
  constexpr float kLargestHalf = 65504.0F;
  if (dtype == DType::kBF16) {
    const auto* bits = static_cast<const std::uint16_t*>(data);
    return std::all_of(bits, bits + bytes / sizeof(std::uint16_t), [](std::uint16_t b) {
      return std::fabs(bfloat_to_float(b)) <= kLargestHalf;
    });
  }
  if (dtype != DType::kF32) return dtype == DType::kF16;
  const auto* values = static_cast<const float*>(data);
  // Comparisons with NaN are false, so NaN does not fit a half.
  return std::all_of(values, values + bytes / sizeof(float),
                     [](float v) { return std::fabs(v) <= kLargestHalf; });
}

Constant Constant::widened() const {
  const auto each = static_cast<std::size_t>(8 / bits);
  const auto owned = std::make_shared<std::vector<std::uint8_t>>(bytes * each);
  widen(data, bits, 0, owned->size(), owned->data());
  return {owned->data(), owned->size(), dtype, owned};
}

void widen(const void* packed, int bits, std::size_t first, std::size_t count, std::uint8_t* to) {
  const auto* from = static_cast<const std::uint8_t*>(packed);
  const auto width = static_cast<unsigned>(bits);
  const std::size_t each = 8 / width;  // elements of a byte
  const unsigned mask = (1U << width) - 1, sign = 1U << (width - 1);
  for (std::size_t i = first; i < first + count; ++i) {
    const unsigned part = static_cast<unsigned>(from[i / each]) >> (width * (i % each)) & mask;
    *to++ = static_cast<std::uint8_t>((part ^ sign) - sign);
  }
}

}  // namespace clgpu::ir
