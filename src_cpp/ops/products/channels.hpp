// Products of quantised numbers: their checks, and the table by which their sums are requantised
// per channel.
#pragma once

#include <optional>
#include <vector>

#include "ops/quantized/quantized.hpp"

namespace clgpu::ops {

/// Scale of a product of src and weights (its channel o) divided by that of dst, in the arithmetic
/// of the reference kernels: the product is rounded to float if `float_product`.
double product_scale(const ir::Tensor& src, const ir::Tensor& weights, std::int64_t channel,
                     const ir::Tensor& dst, bool float_product);

/// Inputs of a node that sums products of quantised numbers, and the axis of the output channels in
/// its weights.
struct ProductInputs {
  int src, weights, bias;  ///< bias may be absent
  int channel_axis;
  bool any_zero = false;     ///< int8 weights with one scale may have a zero point
  bool narrow_bias = false;  ///< int16 may have a bias of int32
};

/// Refuses types and scales for which the reference kernels have no integer arithmetic. Supported
/// are int8 with int8 weights and int32 bias, uint8 with uint8 weights and int32 bias, int16 with
/// int8 weights and int64 bias (or int32, see narrow_bias). The output has the input's type.
/// Weights of int8 have zero point 0 (see any_zero), and one scale or one for each output channel.
std::optional<Refusal> check_quantized_product(const tfl::NodeView& node,
                                               const ProductInputs& inputs);

/// The result of the node's own arithmetic, before its tail (ir::Tail).
ir::Tensor own_result(const NodeContext& node);

/// Refuses anything but float inputs with constant int8 weights, which have zero point 0 and one
/// scale or one for each output channel; a bias is float32.
std::optional<Refusal> check_dynamic_range(const tfl::NodeView& node, const ProductInputs& inputs);

/// The table `channels` of kernels/common/requantize.cl, for node.output(0).
struct ChannelTable {
  kernel::Launch launch;           ///< writes it; runs once if weights and bias are constants
  kernel::Scratch scales, result;  ///< scratch buffers `first` and `first` + 1 of the candidate
  int index;                       ///< of `result` among them
  std::int64_t pitch;              ///< channels, rounded up: vectors of 16 may be read anywhere
  /// Whether FINISH_QUICK may be used if the sums of raw products are below 2^22: every channel is
  /// scaled by 2^-19 to 1/2, so sums above 2^29 end at a bound of eight bits.
  bool quick;
  int bias;  ///< input of the node, which may be absent
};

/// The position of element k of the weights of channel o: o * step_o + k * step_k.
struct WeightsOrder {
  std::int64_t channels, depth, step_o, step_k;
};

/// `first`: index of its two scratch buffers in the candidate that uses it. Shifts of uint8 are
/// derived from a product of scales in float, all others from one in double, as in the reference
/// kernels. as_int8: its kernel reads uint8 less 128, and zero points are less 128, too.
ChannelTable channel_table(const NodeContext& node, const ProductInputs& inputs,
                           const WeightsOrder& order, int first,
                           Requantization requantization = Requantization::kShifts,
                           bool as_int8 = false);

/// The same if `start` is added to the sums of all channels. `multipliers`: one for each of the
/// `channels` channels, or one for all of them.
kernel::Scratch constant_channels(const std::vector<Multiplier>& multipliers, std::int64_t channels,
                                  std::int32_t start = 0);

/// The zero point of a tensor that is read as int8: for uint8, less 128.
std::int32_t int8_zero_point(const ir::Tensor& tensor);

/// A word (kernels/common/word.cl) of four integers of 8 bits.
std::int32_t byte_word(std::int32_t value);

/// Whether kernels may have BY_FLOATS 1 of kernels/common/epilogue.cl, with the results of this
/// table.
bool may_end_by_floats(const NodeContext& node, const ChannelTable& table);

/// Appends the arguments of BIAS_PARAM and RESIDUAL_PARAM of kernels/common/epilogue.cl with
/// QUANTIZED 1, 2 or 4; `by_floats`: with BY_FLOATS 1.
kernel::Launch& push_channels(kernel::Launch& launch, const NodeContext& node,
                              const ChannelTable& table, bool by_floats = false);
/// `index`: the candidate's scratch buffer, of round_up(channels, 16) columns.
kernel::Launch& push_channels(kernel::Launch& launch, const NodeContext& node, int index,
                              std::int64_t channels);

}  // namespace clgpu::ops
