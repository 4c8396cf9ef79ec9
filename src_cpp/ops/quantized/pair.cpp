#include "ops/quantized/pair.hpp"

#include <algorithm>
#include <cmath>

namespace clgpu::ops {
namespace {

double real(float scale) { return static_cast<double>(scale); }

PairScaling sum_scaling(BinaryOp op, float a, float b, float dst, bool wide) {
  PairScaling scaling;
  const bool square = op == BinaryOp::kSquaredDifference;
  scaling.left = square ? 7 : wide ? 15 : 20;
  const double twice = real(2 * std::max(a, b));
  scaling.a = quantize_multiplier(real(a) / twice);
  scaling.b = quantize_multiplier(real(b) / twice);
  const float unit = static_cast<float>(1 << (square ? 14 : scaling.left)) * dst;
  scaling.result = quantize_multiplier((square ? twice * twice : twice) / real(unit));
  return scaling;
}

}  // namespace

PairScaling pair_scaling(BinaryOp op, float a, float b, float dst, bool wide) {
  PairScaling scaling;
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kSquaredDifference:
      return sum_scaling(op, a, b, dst, wide);
    case BinaryOp::kMul:  // these products and quotients are also floats in the reference kernels
      scaling.result = quantize_multiplier(real(a * b / dst));
      break;
    case BinaryOp::kDiv:
      scaling.result = quantize_multiplier(real(a / (b * dst)));
      break;
    case BinaryOp::kPrelu:
      scaling.a = quantize_multiplier(real(a / dst));
      scaling.result = quantize_multiplier(real(a * b / dst));
      break;
    default:
      break;
  }
  return scaling;
}

PairScaling pair_scaling(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b,
                         const ir::Tensor& dst, ir::Activation activation) {
  PairScaling scaling =
      pair_scaling(op, a.scale(), b.scale(), dst.scale(), dst.dtype == DType::kI16);
  scaling.a_zero = a.zero_point();
  scaling.b_zero = b.zero_point();
  scaling.zero = dst.zero_point();
  scaling.range = activation_range(activation, dst);
  return scaling;
}

std::optional<RealPair> real_pair(const PairScaling& scaling, std::int32_t zero_of_a) {
  constexpr double kMost = 2;  // see kernels/common/by_floats.cl
  const auto real_of = [](const Multiplier& m) {
    return std::ldexp(static_cast<double>(m.value), m.shift - 31);
  };
  const double unit = std::ldexp(real_of(scaling.result), scaling.left);
  const double a = real_of(scaling.a) * unit, b = real_of(scaling.b) * unit;
  if (a > kMost || b > kMost) return std::nullopt;
  const double start = scaling.zero - a * (scaling.a_zero - zero_of_a) - b * scaling.b_zero;
  return RealPair{static_cast<float>(a), static_cast<float>(b), static_cast<float>(start)};
}

kernel::Launch& push_pair(kernel::Launch& launch, const PairScaling& scaling) {
  launch.i32(scaling.left);
  launch.i32(scaling.a_zero).i32(scaling.a.value).i32(scaling.a.shift);
  launch.i32(scaling.b_zero).i32(scaling.b.value).i32(scaling.b.shift);
  launch.i32(scaling.result.value).i32(scaling.result.shift);
  return launch.i32(scaling.zero).i32(scaling.range.low).i32(scaling.range.high);
}

}  // namespace clgpu::ops
