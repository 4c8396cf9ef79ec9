#include "ops/quantized/lookup_functions.hpp"

#include <cmath>
#include <limits>

#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

double real(float x) { return static_cast<double>(x); }

/// Saturates; NaN becomes 0.
std::int32_t to_int(float x) {
  if (x >= -2147483648.0F && x < 2147483648.0F) return static_cast<std::int32_t>(x);
  if (std::isnan(x)) return 0;
  return x < 0 ? std::numeric_limits<std::int32_t>::min()
               : std::numeric_limits<std::int32_t>::max();
}

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

float gelu(float x, bool approximate) {
  if (!approximate) return 0.5F * x * std::erfc(x * static_cast<float>(-0.70710678118654752440));
  constexpr auto kFactor = static_cast<float>(1.12837916709551257390 * 0.70710678118654752440);
  return 0.5F * x * (1.0F + std::tanh(kFactor * (x + 0.044715F * x * x * x)));
}

/// The functions of real numbers that the reference kernels tabulate.
float value_of(const TableFunction& f, const Ends& ends, float x) {
  switch (f.builtin) {
    case kLogistic:
      return sigmoid(x);
    case kTanh:
      return std::tanh(x);
    case kElu:
      return x < 0.0F ? std::expm1(x) : x;
    case kGelu:
      return gelu(x, f.approximate);
    case kExp:
      return std::exp(x);
    case kLog:
      return x > 0.0F ? std::log(x)
                      : static_cast<float>(ends.dst.low - ends.dst_zero) * ends.dst_scale;
    case kRsqrt:
      return x > 0.0F ? 1.0F / std::sqrt(x) : 32767.0F * ends.dst_scale;
    default:
      throw_internal(__FILE__, __LINE__, "not a tabulated function");
  }
}

std::int16_t short_of(Multiplier m) {
  constexpr std::int32_t kRound = 1 << 15;
  if (m.value >= std::numeric_limits<std::int32_t>::max() - kRound) return 32767;
  return static_cast<std::int16_t>((m.value + kRound) >> 16);
}

}  // namespace

std::int16_t tabulated(const TableFunction& f, const Ends& ends, int x) {
  const float inverse = 1 / ends.dst_scale;
  const float y = value_of(f, ends, ends.src_scale * static_cast<float>(x - ends.src_zero));
  return ends.clamped(to_int(std::round(y * inverse) + static_cast<float>(ends.dst_zero)));
}

Interpolated::Interpolated(const TableFunction& f, const Ends& ends)
    : values_(interpolation_table<float>(ends.src_scale, ends.src_zero, ends.dst_scale,
                                         ends.dst_zero,
                                         [&](float x) { return value_of(f, ends, x); })) {}

std::int16_t Interpolated::at(int x) const {
  const std::size_t i = uz(256 + (x >> 7));
  const auto slope = static_cast<std::int16_t>(values_[i + 1] - values_[i]);
  return static_cast<std::int16_t>(values_[i] + ((slope * (x & 127) + 64) >> 7));
}

Sigmoid::Sigmoid(const TableFunction& f, const Ends& ends) : tanh_(f.builtin == kTanh) {
  const auto exact = [](double i) { return 65536.0 / (1.0 + std::exp(-i / 24.0)); };
  for (int i = 0; i < 255; ++i) {
    const double middle = exact(i + 0.5) - (exact(i) + exact(i + 1)) / 2;
    table_[uz(i)] = static_cast<std::uint32_t>(std::lround(exact(i) + middle / 2));
  }
  table_[255] = 65535;
  const int left = 12 + log2_of(ends.src_scale).value_or(-99);
  if (left == 0 || (tanh_ && left == 1)) {
    multiplier_ = 3 << left;
    return;
  }
  double multiplier = real(ends.src_scale) * 4096.0 * 3.0;
  for (; multiplier <= 32767.0 / 2.0 && right_ <= 30; ++right_) multiplier *= 2.0;
  multiplier_ = static_cast<std::int32_t>(std::min(multiplier, 2147483647.0));
}

std::int16_t Sigmoid::at(int stored) const {
  const auto product = static_cast<std::uint32_t>(stored) * static_cast<std::uint32_t>(multiplier_);
  const std::uint32_t round = right_ > 0 ? 1U << (right_ - 1) : 0;
  const std::int32_t x = static_cast<std::int32_t>(product + round) >> right_;
  const std::uint32_t size =
      x < 0 ? 0U - static_cast<std::uint32_t>(x) : static_cast<std::uint32_t>(x);
  return tanh_ ? tanh_of(x < 0, size) : logistic_of(x < 0, size);
}

std::int16_t Sigmoid::logistic_of(bool negative, std::uint32_t size) const {
  const std::uint32_t i = size >> 9;
  std::uint32_t y = 0x7FFFU << 10;
  if (i < 255) y = (table_[i] << 9) + (size & 511) * (table_[i + 1] - table_[i]);
  y = negative ? (1U << 25) - y + 511 : y + 512;
  return static_cast<std::int16_t>(y >> 10);
}

std::int16_t Sigmoid::tanh_of(bool negative, std::uint32_t size) const {
  const std::uint32_t i = size >> 8;
  std::int32_t y = 0xFFFF << 8;
  if (i < 255)
    y = static_cast<std::int32_t>((table_[i] << 8) + (size & 255) * (table_[i + 1] - table_[i]));
  y = negative ? -y + (1 << 23) + 127 : y - (1 << 23) + 128;
  return static_cast<std::int16_t>(y >> 8);
}

HardSwish::HardSwish(const Ends& ends) : ends_(ends) {
  const float fine = (1.0F / 128.0F) * ends.src_scale;
  output_ = quantize_multiplier(real(fine / ends.dst_scale));
  relu_ = quantize_multiplier(real(fine / (3.0F / 32768.0F)));
}

std::int16_t HardSwish::at(int stored) const {
  const auto fine = static_cast<std::int16_t>((stored - ends_.src_zero) * 128);
  const std::int16_t x = doubled_high(fine, short_of(output_));
  std::int16_t relu = fine;  // (x + 3) / 6, from -1 to 1 at first
  if (relu_.shift > 0) relu = shifted_left(relu, relu_.shift - 1);
  relu = doubled_high(relu, short_of(relu_));
  if (relu_.shift > 0) relu = shifted_left<std::int16_t>(relu, 1);
  if (relu_.shift < 0) relu = shifted(relu, -relu_.shift);
  relu = static_cast<std::int16_t>((relu + 32768) >> 1);
  const auto product = static_cast<std::int16_t>(relu * x / 32768);  // not rounded
  return ends_.clamped(
      static_cast<std::int16_t>(shifted(product, -output_.shift) + ends_.dst_zero));
}

}  // namespace clgpu::ops
