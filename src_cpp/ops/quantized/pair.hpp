// Operations on two quantised numbers: both are scaled to a common scale, and the result to its
// own.
#pragma once

#include <optional>

#include "ops/quantized/quantized.hpp"
#include "ops/shared/binary_op.hpp"

namespace clgpu::ops {

/// Parameters of kernels/common/quantized_add.cl: the operands a and b are moved by their zero
/// points and shifted to the left, scaled to a common scale, and the result is scaled to that of
/// dst.
struct PairScaling {
  int left = 0;
  std::int32_t a_zero = 0;
  Multiplier a{};
  std::int32_t b_zero = 0;
  Multiplier b{};
  Multiplier result{};
  std::int32_t zero = 0;
  IntRange range{0, 0};
};

/// For dst = activation(a + b), a - b or (a - b)^2 with the arithmetic of the reference kernels. a,
/// b and dst have one scale each, and have passed `check_quantized_binary`.
PairScaling pair_scaling(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b,
                         const ir::Tensor& dst, ir::Activation activation);

/// The same for scales alone, without zero points and bounds; `wide`: for int16.
PairScaling pair_scaling(BinaryOp op, float a, float b, float dst, bool wide);

/// A quantised sum of integers of 8 bits as one of reals: a * (stored a - zero_of_a) + b * (stored
/// b)
/// + start is the stored result before it is rounded, within the errors that
/// kernels/common/by_floats.cl names.
struct RealPair {
  float a, b, start;
};

/// None if a factor is too large for these errors.
std::optional<RealPair> real_pair(const PairScaling& scaling, std::int32_t zero_of_a);

/// Appends the arguments of QUANTIZED_PAIR_PARAMS.
kernel::Launch& push_pair(kernel::Launch& launch, const PairScaling& scaling);

}  // namespace clgpu::ops
