#include "ops/products/channels.hpp"

#include <algorithm>
#include <cstring>

#include "ops/quantized/pair.hpp"

namespace clgpu::ops {
namespace {

// Row indices of the inputs and of the result of kernels/requantize/channels.cl.
constexpr int kScaleRows = 3, kTableRows = 5;

Refusal wrong_scale_axis(int axis, int channel_axis) {
  return {Why::kQuantization,
          "weights tensor",
          {},
          "scales along axis " + std::to_string(axis),
          {"axis " + std::to_string(channel_axis) + ", that of the output channels"}};
}

}  // namespace

double product_scale(const ir::Tensor& src, const ir::Tensor& weights, std::int64_t channel,
                     const ir::Tensor& dst, bool float_product) {
  const ir::Quantization& q = *weights.quantization;
  const float scale = q.per_axis() ? q.scales[uz(channel)] : q.scales.front();
  const double product = float_product
                             ? static_cast<double>(src.scale() * scale)
                             : static_cast<double>(src.scale()) * static_cast<double>(scale);
  return product / static_cast<double>(dst.scale());
}

std::optional<Refusal> check_quantized_product(const tfl::NodeView& node,
                                               const ProductInputs& inputs) {
  const tfl::TensorView src = node.input(inputs.src), weights = node.input(inputs.weights);
  const tfl::TensorView dst = node.output(0);
  if (auto refusal = check_type(src, "input", {DType::kI8, DType::kU8, DType::kI16}))
    return refusal;
  const DType type = src.dtype();
  const bool wide = type == DType::kI16;
  if (!weights.is_narrow() || type != DType::kI8) {
    if (auto refusal = check_type(weights, "weights tensor", {wide ? DType::kI8 : type}))
      return refusal;
  }
  if (auto refusal = check_type(dst, "output", {type})) return refusal;
  if (auto refusal = check_per_tensor(src, "input")) return refusal;
  if (auto refusal = check_per_tensor(dst, "output")) return refusal;
  const auto scales = tfl::quantization_of(weights);
  if (scales == nullptr) return Refusal{Why::kQuantization, "weights tensor", "has no scale"};
  if (scales->block > 0)
    return Refusal{Why::kQuantization, "the weights", "have scales of blocks, the input integers"};
  if (scales->per_axis() && scales->axis != inputs.channel_axis) {
    return wrong_scale_axis(scales->axis, inputs.channel_axis);
  }
  const bool shifted = std::any_of(scales->zero_points.begin(), scales->zero_points.end(),
                                   [](std::int32_t zero) { return zero != 0; });
  const bool may_shift = (inputs.any_zero && !weights.is_narrow()) || weights.dtype() == DType::kU8;
  if (shifted && (!may_shift || scales->per_axis()))
    return Refusal{Why::kQuantization, "the weights", "have a zero point other than 0"};
  if (node.has_input(inputs.bias)) {
    const tfl::TensorView bias = node.input(inputs.bias);
    // With an int32 bias, the reference kernels sum int16 in 32 bits, and round differently.
    if (wide && inputs.narrow_bias) return check_type(bias, "bias", {DType::kI64, DType::kI32});
    if (wide) return check_type(bias, "bias", {DType::kI64});
    return check_type(bias, "bias", {DType::kI32});
  }
  return std::nullopt;
}

ir::Tensor own_result(const NodeContext& node) {
  ir::Tensor result = node.output(0);
  if (node.node().tail != nullptr) result.quantization = node.node().tail->own;
  return result;
}

std::optional<Refusal> check_dynamic_range(const tfl::NodeView& node, const ProductInputs& inputs) {
  const tfl::TensorView weights = node.input(inputs.weights);
  if (auto refusal = check_type(node.input(inputs.src), "input", {DType::kF32})) return refusal;
  if (auto refusal = check_type(node.output(0), "output", {DType::kF32})) return refusal;
  if (!weights.is_narrow()) {
    if (auto refusal = check_type(weights, "weights tensor", {DType::kI8})) return refusal;
  }
  if (node.has_input(inputs.bias)) {
    if (auto refusal = check_type(node.input(inputs.bias), "bias", {DType::kF32})) return refusal;
  }
  if (!weights.has_data()) return Refusal{Why::kOperands, "the int8 weights", "are no constant"};
  const auto q = tfl::quantization_of(weights);
  if (q->per_axis() && q->axis != inputs.channel_axis) {
    return wrong_scale_axis(q->axis, inputs.channel_axis);
  }
  const bool shifted = std::any_of(q->zero_points.begin(), q->zero_points.end(),
                                   [](std::int32_t zero) { return zero != 0; });
  if (shifted) return Refusal{Why::kQuantization, "the weights", "have a zero point other than 0"};
  return std::nullopt;
}

namespace {

/// The sums of the weights and their scales; the bias stays an input.
ChannelTable hybrid_table(const NodeContext& node, const ProductInputs& inputs,
                          const WeightsOrder& order, int first) {
  const ir::Tensor& weights = node.input(inputs.weights);
  const ir::Quantization& q = *weights.quantization;
  const std::int64_t pitch = round_up(order.channels, 16);
  std::vector<float> scales(uz(kScaleRows * pitch), 0.0F);
  for (std::int64_t o = 0; o < order.channels; ++o)
    scales[uz(o)] = q.per_axis() ? q.scales[uz(o)] : q.scales.front();
  kernel::Launch launch("requantize/channels.cl", "requantize_channels");
  launch.type("WEIGHTS_T", weights.storage).macro("BIAS", 0).type("BIAS_T", DType::kI32);
  launch.src(inputs.weights).scratch_in(first).scratch_out(first + 1);
  launch.i32(order.channels).i32(pitch).i32(order.depth).i32(order.step_o).i32(order.step_k);
  launch.i32(/*src_zero=*/-1).i32(/*weights_zero=*/0).i32(/*extra=*/0);
  launch.range({uz(pitch)}, {kElementwiseGroup});
  const auto bytes = kTableRows * pitch * static_cast<std::int64_t>(sizeof(std::int32_t));
  return {launch, kernel::table(scales), {bytes}, first + 1, pitch, /*quick=*/false, inputs.bias};
}

}  // namespace

ChannelTable channel_table(const NodeContext& node, const ProductInputs& inputs,
                           const WeightsOrder& order, int first, Requantization requantization,
                           bool as_int8) {
  if (is_hybrid(node)) return hybrid_table(node, inputs, order, first);
  const ir::Tensor &src = node.input(inputs.src), &weights = node.input(inputs.weights);
  const ir::Tensor dst = own_result(node);
  const std::int64_t pitch = round_up(order.channels, 16);
  const bool float_product = requantization == Requantization::kShifts && src.dtype == DType::kU8;
  std::vector<std::int32_t> scales(uz(kScaleRows * pitch), 0);
  bool quick = requantization == Requantization::kShifts;
  for (std::int64_t o = 0; o < order.channels; ++o) {
    const Multiplier m =
        quantize_multiplier(product_scale(src, weights, o, dst, float_product), requantization);
    scales[uz(o)] = static_cast<std::int32_t>(m.value & 0xFFFFFFFF);
    scales[uz(pitch + o)] = m.shift;
    quick = quick && m.shift >= -18 && m.shift <= -1;
    scales[uz(2 * pitch + o)] = static_cast<std::int32_t>(m.value >> 32);
  }
  std::int64_t extra = 0;
  if (const auto& tail = node.node().tail; tail != nullptr && !tail->table.empty()) {
    std::vector<std::int32_t> table(tail->table.size() / sizeof(std::int32_t));
    std::memcpy(table.data(), tail->table.data(), tail->table.size());
    scales.insert(scales.end(), table.begin(), table.end());
    extra = static_cast<std::int64_t>(table.size());
  }
  const bool has_bias = node.has_input(inputs.bias);
  kernel::Launch launch("requantize/channels.cl", "requantize_channels");
  launch.type("WEIGHTS_T", weights.storage).macro("BIAS", has_bias ? 1 : 0);
  launch.type("BIAS_T", has_bias ? node.input(inputs.bias).storage : DType::kI32);
  launch.src(inputs.weights);
  if (has_bias) launch.src(inputs.bias);
  launch.scratch_in(first).scratch_out(first + 1);
  launch.i32(order.channels).i32(pitch).i32(order.depth).i32(order.step_o).i32(order.step_k);
  launch.i32(as_int8 ? int8_zero_point(src) : src.zero_point()).i32(weights.zero_point());
  launch.i32(extra);
  launch.range({uz(pitch)}, {kElementwiseGroup});
  const auto bytes = (kTableRows * pitch + extra) * static_cast<std::int64_t>(sizeof(std::int32_t));
  return {launch, kernel::table(scales), {bytes}, first + 1, pitch, quick, inputs.bias};
}

kernel::Scratch constant_channels(const std::vector<Multiplier>& multipliers, std::int64_t channels,
                                  std::int32_t start) {
  const std::int64_t pitch = round_up(channels, 16);
  std::vector<std::int32_t> rows(uz(kTableRows * pitch), 0);
  for (std::int64_t o = 0; o < channels; ++o) {
    const Multiplier& multiplier = multipliers[multipliers.size() == 1 ? 0 : uz(o)];
    rows[uz(o)] = start;
    rows[uz(pitch + o)] = static_cast<std::int32_t>(multiplier.value & 0xFFFFFFFF);
    rows[uz(2 * pitch + o)] = multiplier.shift;
    rows[uz(4 * pitch + o)] = static_cast<std::int32_t>(multiplier.value >> 32);
  }
  return kernel::table(rows);
}

std::int32_t int8_zero_point(const ir::Tensor& tensor) {
  return tensor.zero_point() - (tensor.dtype == DType::kU8 ? 128 : 0);
}

std::int32_t byte_word(std::int32_t value) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(value) & 0xFFU) * 0x01010101U);
}

namespace {

/// Of the residual's addition to what the node's own arithmetic gives.
PairScaling residual_scaling(const NodeContext& node) {
  const ir::Tail& tail = *node.node().tail;
  ir::Tensor addend = own_result(node), sum = addend;
  if (node.epilogue().residual_after) addend.quantization = tail.looked_up;
  sum.quantization = tail.sum;
  return pair_scaling(BinaryOp::kAdd, addend, node.input(node.residual()), sum,
                      tail.sum_activation);
}

}  // namespace

bool may_end_by_floats(const NodeContext& node, const ChannelTable& table) {
  const auto& tail = node.node().tail;
  if (!table.quick || node.output(0).dtype != DType::kI8) return false;
  if (tail != nullptr && !tail->table.empty()) return false;
  return node.residual() < 0 ||
         real_pair(residual_scaling(node), own_result(node).zero_point()).has_value();
}

kernel::Launch& push_channels(kernel::Launch& launch, const NodeContext& node,
                              const ChannelTable& table, bool by_floats) {
  if (!is_hybrid(node)) {
    push_channels(launch, node, table.index, table.pitch);
    if (!by_floats || node.residual() < 0) return launch;
    const RealPair real = real_pair(residual_scaling(node), own_result(node).zero_point()).value();
    return launch.f32(real.a).f32(real.b).f32(real.start);
  }
  const ir::Shape& dst = node.output(0).shape;
  const ResultLayout layout = result_layout(node);
  const std::int64_t pixels =
      dst.elements() / dst.back(0) / node.input(kRowFactors).shape[0];  // of a row
  launch.scratch_in(table.index).i32(table.pitch).src(kRowFactors);
  launch.i32(layout.first).i32(pixels * (layout.sliced ? layout.pitch : dst.back(0)));
  if (node.has_input(table.bias)) launch.src(table.bias);
  if (node.residual() >= 0) launch.src(node.residual());
  if (node.slopes() >= 0) launch.src(node.slopes());
  return launch;
}

kernel::Launch& push_channels(kernel::Launch& launch, const NodeContext& node, int index,
                              std::int64_t channels) {
  const ir::Tensor own = own_result(node);
  const IntRange range = activation_range(node.epilogue().activation, own);
  launch.scratch_in(index).i32(round_up(channels, 16));
  launch.i32(own.zero_point()).i32(range.low).i32(range.high);
  if (node.residual() < 0) return launch;
  launch.src(node.residual());
  return push_pair(launch, residual_scaling(node));
}

}  // namespace clgpu::ops
