// Element-wise operations on two quantised tensors (kernels/binary/quantized.cl).
#pragma once

#include "ops/quantized/pair.hpp"
#include "ops/shared/broadcast.hpp"

namespace clgpu::ops {

/// Refuses what the reference kernels do not compute on quantised tensors, or not in integers.
/// `shifts`: set if operands are only shifted, as their scales are powers of two.
std::optional<Refusal> check_quantized_binary(const tfl::NodeView& node, BinaryOp op, bool* shifts);

/// Whether the reference kernels can scale the result to the scale of the output.
bool pair_fits(BinaryOp op, float a, float b, float dst, bool wide);

kernel::Candidate quantized_binary(const NodeContext& node);

}  // namespace clgpu::ops
