#include "runtime/run/constant_bytes.hpp"

#include <cstring>

#include "base/error.hpp"
#include "base/half.hpp"

namespace clgpu::runtime {

bool is_stored_as(const ir::Constant& constant, DType storage) {
  return constant.dtype == storage && constant.bits == 8;
}

void store(const ir::Constant& constant, DType storage, std::size_t first, std::size_t count,
           std::uint8_t* to) {
  const std::size_t each = 8 / static_cast<std::size_t>(constant.bits);
  CLGPU_CHECK((first + count) * size_of(constant.dtype) <= constant.bytes * each);
  const auto convert = [&](auto from, auto f) {
    for (std::size_t i = first; i < first + count; ++i) {
      auto x = from;
      std::memcpy(&x, static_cast<const char*>(constant.data) + i * sizeof x, sizeof x);
      const auto y = f(x);
      std::memcpy(to, &y, sizeof y);
      to += sizeof y;
    }
  };
  if (constant.bits < 8) {
    CLGPU_CHECK(storage == DType::kI8);
    return ir::widen(constant.data, constant.bits, first, count, to);
  }
  if (constant.dtype == DType::kF32 && storage == DType::kF16)
    return convert(float{}, float_to_half);
  CLGPU_CHECK(constant.dtype == DType::kF16 && storage == DType::kF32);
  convert(std::uint16_t{}, half_to_float);
}

}  // namespace clgpu::runtime
