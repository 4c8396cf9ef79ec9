#include "delegate/verify/difference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

// Tolerances of quantised results: results may differ by one step, and steps may be coarse or a
// steep function may follow.
constexpr double kIntegerL2 = 5e-2, kIntegerPeak = 0.3;

template <class T>
double number(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * sizeof value, sizeof value);
  return static_cast<double>(value);
}

double half(const void* data, std::size_t i) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + i * sizeof bits, sizeof bits);
  return static_cast<double>(half_to_float(bits));
}

double bfloat(const void* data, std::size_t i) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + i * sizeof bits, sizeof bits);
  return static_cast<double>(bfloat_to_float(bits));
}

using Reader = double (*)(const void*, std::size_t);

Reader reader_of(TfLiteType type) {
  switch (type) {
    case kTfLiteFloat32:
    case kTfLiteComplex64:  // real and imaginary parts in turns
      return number<float>;
    case kTfLiteFloat16:
      return half;
    case kTfLiteBFloat16:
      return bfloat;
    case kTfLiteInt64:
      return number<std::int64_t>;
    case kTfLiteInt32:
      return number<std::int32_t>;
    case kTfLiteUInt32:
      return number<std::uint32_t>;
    case kTfLiteInt16:
      return number<std::int16_t>;
    case kTfLiteUInt16:
      return number<std::uint16_t>;
    case kTfLiteInt8:
      return number<std::int8_t>;
    default:
      return number<std::uint8_t>;
  }
}

// Numbers: a complex element is two.
std::size_t elements_of(const TfLiteTensor& tensor) {
  std::size_t count = 1;
  for (int i = 0; tensor.dims != nullptr && i < tensor.dims->size; ++i)
    count *= static_cast<std::size_t>(tensor.dims->data[i]);
  return tensor.type == kTfLiteComplex64 ? 2 * count : count;
}

bool is_real(const TfLiteTensor& tensor) {
  return tensor.type == kTfLiteFloat32 || tensor.type == kTfLiteFloat16 ||
         tensor.type == kTfLiteBFloat16 || tensor.type == kTfLiteComplex64;
}

bool is_quantized(const TfLiteTensor& tensor) {
  return !is_real(tensor) && tfl::TensorView(&tensor, -1).is_quantized() && tensor.params.scale > 0;
}

std::string text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.2g", value);
  return digits;
}

}  // namespace

Tolerance tolerance_of(passes::Precision precision, bool half_weights, Level level, bool of_node,
                       std::optional<double> named) {
  const bool mixed = level < Level::kFp32 && precision == passes::Precision::kMixed;
  const bool half =
      mixed || (level < Level::kFp32 && (precision == passes::Precision::kFp16 || half_weights));
  const bool tf32 = level < Level::kExactSums && precision == passes::Precision::kTf32;
  if (half || tf32) {
    const double l2 = mixed ? kMixedL2 : of_node ? 1e-2 : 3e-2;
    return {mixed && !of_node ? named.value_or(l2) : l2, 4 * l2, 1e-5, 1e-2, 1e-3, 2};
  }
  return {5e-4, 2e-3, 1e-7, 1e-3, 0, 2};
}

Difference difference_of(const TfLiteTensor& want, const void* got) {
  Difference result;
  const std::size_t count = elements_of(want);
  if (count == 0 || (want.bytes > 0 && std::memcmp(want.data, got, want.bytes) == 0)) return result;
  const Reader read = reader_of(want.type);
  const double scale = is_quantized(want) ? static_cast<double>(want.params.scale) : 1;
  const double zero = is_quantized(want) ? want.params.zero_point : 0;
  double error = 0, norm = 0, largest = 0, most = 0;
  std::size_t odd = 0, differing = 0;
  bool nan = false;
  for (std::size_t i = 0; i < count; ++i) {
    const double w = read(want.data, i), g = read(got, i);
    if (std::isfinite(w)) {
      norm += (w - zero) * (w - zero);
      largest = std::max(largest, std::fabs(w - zero));
    }
    if (w == g || (std::isnan(w) && std::isnan(g))) continue;
    ++differing;
    if (!std::isfinite(w) || !std::isfinite(g)) {
      nan = nan || std::isnan(w) != std::isnan(g);
      ++odd;
      continue;
    }
    error += (g - w) * (g - w);
    most = std::max(most, std::fabs(g - w));
  }
  result.relative_l2 = error == 0 ? 0 : std::sqrt(error / std::max(norm, 1e-60));
  result.max_abs = most * scale;
  result.peak = most == 0 ? 0 : most / std::max(largest, 1e-30);
  result.steps = most;
  result.differing = static_cast<double>(differing) / static_cast<double>(count);
  result.odd = static_cast<double>(odd) / static_cast<double>(count);
  result.nan = nan;
  return result;
}

double l2_bound(const TfLiteTensor& want, const Tolerance& tolerance) {
  return std::max(tolerance.relative_l2, is_quantized(want) ? kIntegerL2 : 0);
}

std::string problem_of(const TfLiteTensor& want, const Difference& d, const Tolerance& allowed) {
  if (d.nan) return "an element is NaN in one result only";
  if (d.odd > allowed.odd)
    return text(100 * d.odd) + " % of the elements are finite in one result only";
  if (!is_real(want) && !is_quantized(want)) {
    if (d.differing <= allowed.differing) return {};
    return text(100 * d.differing) + " % of the elements differ, allowed " +
           text(100 * allowed.differing) + " %";
  }
  if (is_quantized(want) && d.steps <= allowed.steps) return {};
  if (d.max_abs <= allowed.floor) return {};
  const double l2 = l2_bound(want, allowed);
  const double peak = std::max(allowed.peak, is_quantized(want) ? kIntegerPeak : 0);
  if (d.relative_l2 > l2)
    return "the relative L2 error is " + text(d.relative_l2) + ", allowed " + text(l2);
  if (d.peak > peak)
    return "an element is off by " + text(d.peak) + " of the largest, allowed " + text(peak);
  return {};
}

bool are_ties(const TfLiteTensor& values, int axis, const TfLiteTensor& want, const void* got,
              double slack) {
  const int rank = values.dims->size;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || values.data == nullptr) return false;
  const auto length = static_cast<std::size_t>(values.dims->data[axis]);
  std::size_t inner = 1;
  for (int i = axis + 1; i < rank; ++i) inner *= static_cast<std::size_t>(values.dims->data[i]);
  const std::size_t count = elements_of(want), outer = elements_of(values) / (length * inner);
  if (outer * inner == 0 || count % (outer * inner) != 0) return false;
  const std::size_t per_row = count / (outer * inner);  // 1, or k of TOPK_V2
  const Reader index = reader_of(want.type), value = reader_of(values.type);
  double largest = 0;
  for (std::size_t i = 0; i < elements_of(values); ++i)
    largest = std::max(largest, std::fabs(value(values.data, i)));
  const double step = is_quantized(values) ? 1 : 0;  // an integer may be off by one
  for (std::size_t i = 0; i < count; ++i) {
    const double w = index(want.data, i), g = index(got, i);
    if (w == g) continue;
    if (!(g >= 0) || g >= static_cast<double>(length)) return false;
    const std::size_t row = i / per_row, column = row % inner, start = row / inner * length * inner;
    const auto at = [&](double k) {
      return value(values.data, start + static_cast<std::size_t>(k) * inner + column);
    };
    if (!(std::fabs(at(w) - at(g)) <= slack * largest + step)) return false;
  }
  return true;
}

}  // namespace clgpu::delegate
