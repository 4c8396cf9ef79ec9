// Tables of 513 values between which reference kernels of int16 interpolate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace clgpu::ops {

/// The stored values of `function` of real numbers at 513 positions in the range of int16, in the
/// arithmetic of Real: float or double.
template <class Real, class Function>
std::vector<std::int16_t> interpolation_table(Real src_scale, int src_zero, Real dst_scale,
                                              int dst_zero, const Function& function) {
  constexpr int kSteps = 512;
  const auto input = [&](int x) { return src_scale * static_cast<Real>(x - src_zero); };
  const auto output = [&](int y) { return dst_scale * static_cast<Real>(y - dst_zero); };
  const Real first = input(-32768), last = input(32767);
  const Real step = (last - first) / kSteps, half_step = step / 2;
  const Real inverse = Real(65536) / (output(32767) - output(-32768));
  const auto stored = [](Real y) {
    if (std::isnan(y)) return std::int16_t{0};
    return static_cast<std::int16_t>(std::min(std::max(y, Real(-32768)), Real(32767)));
  };
  std::vector<std::int16_t> table;
  for (int i = 0; i < kSteps; ++i) {
    const Real here = function(first + static_cast<Real>(i) * step);
    const Real middle = function(first + static_cast<Real>(i) * step + half_step);
    const Real next = function(first + static_cast<Real>(i + 1) * step);
    const Real sample = std::round(here * inverse);
    const Real guess = std::round((next * inverse + std::round(here * inverse)) / 2);
    const Real error = guess - std::round(middle * inverse);
    table.push_back(stored(sample - std::round(error / 2)));
  }
  table.push_back(stored(std::round(function(last) * inverse)));
  return table;
}

}  // namespace clgpu::ops
