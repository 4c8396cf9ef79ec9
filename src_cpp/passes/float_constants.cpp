#include "passes/float_constants.hpp"

#include <cmath>

#include "base/bfloat.hpp"
#include "base/half.hpp"

namespace clgpu::passes {

float element_of(const ir::Constant& constant, std::size_t i) {
  if (constant.dtype == DType::kF32) return static_cast<const float*>(constant.data)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(constant.data)[i];
  return constant.dtype == DType::kF16 ? half_to_float(bits) : bfloat_to_float(bits);
}

const char* problem_of_floats(const ir::Tensor& tensor) {
  if (!tensor.is_constant() || tensor.dtype != DType::kF32) return "they are no constant floats";
  const DType type = tensor.constant->dtype;
  if (!is_float(type)) return "they are no constant floats";
  const auto count = static_cast<std::size_t>(tensor.shape.elements());
  if (count == 0 || tensor.constant->bytes != count * size_of(type)) return "they have no elements";
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(element_of(*tensor.constant, i))) return "they are not all finite";
  }
  return "";
}

}  // namespace clgpu::passes
