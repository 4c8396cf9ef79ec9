// Element-wise operations on two quantised tensors (kernels/binary/quantized.cl).
#pragma once

#include "ops/binary.hpp"
#include "ops/broadcast.hpp"
#include "ops/quantized.hpp"

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

/// For dst = activation(a + b), a - b or (a - b)^2 with the arithmetic of the reference kernels; a,
/// b and dst have one scale each, and `check_quantized_binary` has nothing against them.
PairScaling pair_scaling(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b,
                         const ir::Tensor& dst, ir::Activation activation);

/// Appends the arguments of QUANTIZED_PAIR_PARAMS.
kernel::Launch& push_pair(kernel::Launch& launch, const PairScaling& scaling);

/// Refuses what the reference kernels do not compute on quantised tensors, or not as integers.
/// `shifts`: set where operands are shifted only, as their scales are powers of two.
std::optional<Refusal> check_quantized_binary(const tfl::NodeView& node, BinaryOp op, bool* shifts);

kernel::Candidate quantized_binary(const NodeContext& node);

}  // namespace clgpu::ops
