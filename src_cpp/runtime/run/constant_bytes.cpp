#include "runtime/run/constant_bytes.hpp"

#include <cstring>

#include "base/error.hpp"
#include "base/half.hpp"

namespace clgpu::runtime {

std::vector<std::uint8_t> bytes_as(const ir::Constant& constant, DType storage) {
  const auto convert = [&](auto from, auto to, auto f) {
    using From = decltype(from);
    using To = decltype(to);
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
  if (constant.dtype == DType::kF32 && storage == DType::kF16)
    return convert(float{}, std::uint16_t{}, float_to_half);
  CLGPU_CHECK(constant.dtype == DType::kF16 && storage == DType::kF32);
  return convert(std::uint16_t{}, float{}, half_to_float);
}

}  // namespace clgpu::runtime
