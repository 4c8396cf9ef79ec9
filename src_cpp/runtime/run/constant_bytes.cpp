#include "runtime/run/constant_bytes.hpp"

#include <cstring>

#include "base/bfloat.hpp"
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
  const DType from = constant.dtype;
  CLGPU_CHECK(is_float(from) && is_float(storage) && from != storage);
  const auto bits = std::uint16_t{};
  if (storage == DType::kF32)
    return from == DType::kF16 ? convert(bits, half_to_float) : convert(bits, bfloat_to_float);
  if (from == DType::kF32)
    return storage == DType::kF16 ? convert(0.0F, float_to_half) : convert(0.0F, float_to_bfloat);
  if (from == DType::kF16)
    return convert(bits, [](std::uint16_t x) { return float_to_bfloat(half_to_float(x)); });
  convert(bits, [](std::uint16_t x) { return float_to_half(bfloat_to_float(x)); });
}

}  // namespace clgpu::runtime
