// The parts of look-up tables (ops/quantized/lookup.cpp): functions of one stored value, each with
// the arithmetic of the reference kernel of its type, float or fixed-point.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/quantized/fixed_point.hpp"
#include "ops/quantized/interpolation.hpp"
#include "ops/quantized/table_function.hpp"

namespace clgpu::ops {

/// TFLite's codes.
enum TableCode {
  kLogistic = 14,
  kRelu = 19,
  kReluN1To1 = 20,
  kRelu6 = 21,
  kTanh = 28,
  kExp = 47,
  kNeg = 59,
  kLog = 73,
  kSqrt = 75,
  kRsqrt = 76,
  kLeakyRelu = 98,
  kAbs = 101,
  kElu = 111,
  kHardSwish = 117,
  kGelu = 150,
  kRelu0To1 = 152,
  kSquare = 92,
  kSign = 158,
};

/// Scales and bounds of the two tensors of a function.
struct Ends {
  float src_scale, dst_scale;
  std::int32_t src_zero, dst_zero;
  IntRange dst;

  std::int16_t clamped(std::int32_t x) const {
    return static_cast<std::int16_t>(std::clamp(x, dst.low, dst.high));
  }
};

/// The result if the reference tabulates a function of real numbers; x of 8 bits.
std::int16_t tabulated(const TableFunction& f, const Ends& ends, int x);

/// int16: the reference interpolates between 513 values of the function.
class Interpolated {
 public:
  Interpolated(const TableFunction& f, const Ends& ends);
  std::int16_t at(int x) const;

 private:
  std::vector<std::int16_t> values_;
};

/// int16 LOGISTIC and TANH: the reference interpolates sigmoid(i / 24), in 16 bits.
class Sigmoid {
 public:
  Sigmoid(const TableFunction& f, const Ends& ends);
  std::int16_t at(int x) const;

 private:
  std::int16_t logistic_of(bool negative, std::uint32_t size) const;
  std::int16_t tanh_of(bool negative, std::uint32_t size) const;

  bool tanh_;
  std::int32_t multiplier_ = 0;
  int right_ = 0;
  std::array<std::uint32_t, 256> table_{};
};

/// HARD_SWISH of 8 bits, computed in 16.
class HardSwish {
 public:
  explicit HardSwish(const Ends& ends);
  /// Whether the scale of the result is large enough for the reference kernel.
  bool allowed() const { return output_.shift <= 0; }
  std::int16_t at(int x) const;

 private:
  Ends ends_;
  Multiplier output_, relu_;
};

}  // namespace clgpu::ops
