#include "runtime/run/constant_bytes.hpp"

#include <cstring>

#include "base/bfloat.hpp"
#include "base/error.hpp"
#include "base/half.hpp"

namespace clgpu::runtime {

std::vector<std::uint8_t> bytes_as(const ir::Constant& constant, DType storage) {
  const auto convert = [&](auto f, auto from) {
    using From = decltype(from);
    using To = decltype(f(from));
    const std::size_t n = constant.bytes / sizeof(From);
    std::vector<std::uint8_t> bytes(n * sizeof(To));
    for (std::size_t i = 0; i < n; ++i) {
      From x;
      std::memcpy(&x, static_cast<const char*>(constant.data) + i * sizeof x, sizeof x);
      const To y = f(x);
      std::memcpy(bytes.data() + i * sizeof y, &y, sizeof y);
    }
    return bytes;
  };
  const DType from = constant.dtype;
  CLGPU_CHECK(is_float(from) && is_float(storage) && from != storage);
  if (storage == DType::kF32) {
    return from == DType::kF16 ? convert(half_to_float, std::uint16_t{})
                               : convert(bfloat_to_float, std::uint16_t{});
  }
  if (from == DType::kF32) {
    return storage == DType::kF16 ? convert(float_to_half, float{})
                                  : convert(float_to_bfloat, float{});
  }
  if (from == DType::kF16)
    return convert([](std::uint16_t x) { return float_to_bfloat(half_to_float(x)); },
                   std::uint16_t{});
  return convert([](std::uint16_t x) { return float_to_half(bfloat_to_float(x)); },
                 std::uint16_t{});
}

}  // namespace clgpu::runtime
