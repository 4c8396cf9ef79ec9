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

}  // namespace clgpu::ir
