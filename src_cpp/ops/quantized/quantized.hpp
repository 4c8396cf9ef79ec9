// Arithmetic of quantised integers, as TFLite's reference kernels define it: what the rooms share.
#pragma once

#include <optional>
#include <vector>

#include "ops/shared/common.hpp"
#include "tfl/quantization.hpp"

namespace clgpu::ops {

/// A positive real number as value * 2^(shift - 31), value having 31 bits, or, exactly, as value *
/// 2^(shift - 53), value having 53; (0, 0) stands for zero and what is too small.
struct Multiplier {
  std::int64_t value = 0;
  int shift = 0;
};
/// With 31 bits, rounded, for kShifts; with 53 for kReal.
Multiplier quantize_multiplier(double real,
                               Requantization requantization = Requantization::kShifts);

/// Bounds of stored integers.
struct IntRange {
  std::int32_t low, high;
};

/// All that an int8, uint8 or int16 tensor can hold.
IntRange range_of(DType dtype);

/// Stored integers that an activation (none, relu, relu_n1_to_1, relu6) leaves of a quantised
/// tensor.
IntRange activation_range(ir::Activation activation, const ir::Tensor& dst);

/// Refuses activations that are no bounds.
std::optional<Refusal> check_clamping(const ir::Epilogue& epilogue);

/// Refuses unless tensor has one scale; `what` names it in the message.
std::optional<Refusal> check_per_tensor(const tfl::TensorView& tensor, const std::string& what);

/// Of a tensor that may have one scale and one zero point only.
Refusal wrong_scale(const tfl::TensorView& tensor, const std::string& what,
                    const std::string& scale, int zero_point);

/// Four bytes of elements that stand for zero, to be stored as bits: of int8 four zero points.
std::int32_t fill_of(const ir::Tensor& tensor);

/// Refuses unless all outputs of the type of input `input` have its scale and zero point, or none
/// of them has any: for operations that move stored numbers.
std::optional<Refusal> check_moved(const tfl::NodeView& node, int input);

}  // namespace clgpu::ops
