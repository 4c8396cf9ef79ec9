// Arithmetic of quantised integers, as TFLite's reference kernels define it: shared by the
// families.
#pragma once

#include <optional>
#include <vector>

#include "ops/shared/common.hpp"
#include "tfl/quantization.hpp"

namespace clgpu::ops {

/// A positive real number as value * 2^(shift - 31), with a value of 31 bits, or, exactly, as value
/// * 2^(shift - 53), with a value of 53 bits; (0, 0) represents zero and numbers that are too
/// small.
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

/// The range of an int8, uint8 or int16 tensor.
IntRange range_of(DType dtype);

/// The stored integers to which an activation (none, relu, relu_n1_to_1, relu6) limits a quantised
/// tensor.
IntRange activation_range(ir::Activation activation, const ir::Tensor& dst);

/// Refuses activations that are not bounds.
std::optional<Refusal> check_clamping(const ir::Epilogue& epilogue);

/// IntegerForm::adapt of nodes whose attributes are the same and whose activation becomes bounds.
std::string clamping_problem(const ir::Graph& graph, ir::Node& node);

/// The form of operations on input 0 that move, or compare, stored integers.
extern const IntegerForm kMovedIntegers;

/// Refuses unless the tensor has one scale; `what` names it in the message.
std::optional<Refusal> check_per_tensor(const tfl::TensorView& tensor, const std::string& what);

/// For a tensor with at most one scale and one zero point.
Refusal wrong_scale(const tfl::TensorView& tensor, const std::string& what,
                    const std::string& scale, int zero_point);

/// Four bytes of elements that represent zero, to be stored as bits: for int8, four zero points.
std::int32_t fill_of(const ir::Tensor& tensor);

/// Refuses unless all outputs with the type of input `input` have its scale and zero point, or none
/// of these tensors has any: for operations that move stored integers.
std::optional<Refusal> check_moved(const tfl::NodeView& node, int input);

}  // namespace clgpu::ops
