// Arithmetic of quantised integers, as TFLite's reference kernels define it: what the rooms share.
#pragma once

#include <optional>
#include <vector>

#include "ops/common.hpp"
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

/// Scale of a product of src and weights (its channel o) over that of dst, in the arithmetic of the
/// reference kernels: the product is rounded to float where `float_product`.
double product_scale(const ir::Tensor& src, const ir::Tensor& weights, std::int64_t channel,
                     const ir::Tensor& dst, bool float_product);

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

/// Inputs of a node that sums products of quantised numbers, and the axis of its weights that the
/// output channels run along.
struct ProductInputs {
  int src, weights, bias;  ///< bias may be absent
  int channel_axis;
  bool any_zero = false;     ///< int8 weights of one scale may have a zero point, too
  bool narrow_bias = false;  ///< so may int16 a bias of int32
};

/// Refuses unless types and scales are such that the reference kernels have integer arithmetic for
/// them: int8 with int8 weights and int32 bias, uint8 with uint8 weights and int32 bias, int16 with
/// int8 weights and int64 bias (or int32, see narrow_bias); the output is of the input's type;
/// weights of int8 have zero point 0 (see any_zero), and one scale or one for each output channel.
std::optional<Refusal> check_quantized_product(const tfl::NodeView& node,
                                               const ProductInputs& inputs);

/// The result as the node's own arithmetic yields it, before its tail (ir::Tail).
ir::Tensor own_result(const NodeContext& node);

/// Refuses unless floats are multiplied by constant int8 weights with zero point 0, and one scale
/// or one for each output channel; a bias is float32.
std::optional<Refusal> check_dynamic_range(const tfl::NodeView& node, const ProductInputs& inputs);

/// The table `channels` of kernels/common/requantize.cl, for node.output(0).
struct ChannelTable {
  kernel::Launch launch;           ///< writes it; runs once where weights and bias are constants
  kernel::Scratch scales, result;  ///< scratch buffers `first` and `first` + 1 of the candidate
  int index;                       ///< of `result` among them
  std::int64_t pitch;              ///< channels, rounded up: vectors of 16 may be read anywhere
  /// FINISH_QUICK may be used, if the sums of raw products are below 2^22: every channel is scaled
  /// by 2^-19 to 1/2, so what exceeds 2^29 ends at a bound of eight bits.
  bool quick;
  int bias;  ///< input of the node, which may be absent
};

/// Where element k of the weights of channel o lies: o * step_o + k * step_k.
struct WeightsOrder {
  std::int64_t channels, depth, step_o, step_k;
};

/// `first`: index of its two scratch buffers in the candidate that uses it. Shifts of uint8 come of
/// a product of scales in float, all else of one in double, as in the reference kernels.
/// as_int8: its kernel reads uint8 less 128, and zero points are less 128, too.
ChannelTable channel_table(const NodeContext& node, const ProductInputs& inputs,
                           const WeightsOrder& order, int first,
                           Requantization requantization = Requantization::kShifts,
                           bool as_int8 = false);

/// The same where all `channels` channels have one multiplier and `start` is added to their sums.
kernel::Scratch uniform_channels(const Multiplier& multiplier, std::int64_t channels,
                                 std::int32_t start = 0);

/// The zero point of a tensor that is read as int8: less 128 of uint8.
std::int32_t int8_zero_point(const ir::Tensor& tensor);

/// A word (kernels/common/word.cl) of four integers of 8 bits.
std::int32_t byte_word(std::int32_t value);

/// Appends the arguments of BIAS_PARAM and RESIDUAL_PARAM of kernels/common/epilogue.cl with
/// QUANTIZED 1, 2 or 4.
kernel::Launch& push_channels(kernel::Launch& launch, const NodeContext& node,
                              const ChannelTable& table);
/// `index`: the candidate's scratch buffer, of round_up(channels, 16) columns.
kernel::Launch& push_channels(kernel::Launch& launch, const NodeContext& node, int index,
                              std::int64_t channels);

}  // namespace clgpu::ops
