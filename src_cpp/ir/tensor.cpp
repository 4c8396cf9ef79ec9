#include "ir/tensor.hpp"

#include <algorithm>
#include <cmath>

namespace clgpu::ir {

bool Constant::fits_half() const {
  constexpr float kLargestHalf = 65504.0F;
  if (dtype != DType::kF32) return dtype == DType::kF16;
  const auto* values = static_cast<const float*>(data);
  // Comparisons with NaN are false, so NaN does not fit a half.
  return std::all_of(values, values + bytes / sizeof(float),
                     [](float v) { return std::fabs(v) <= kLargestHalf; });
}

}  // namespace clgpu::ir
