#include "ops/quantized.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/quantized_binary.hpp"

namespace clgpu::ops {
namespace {

// Rows of the inputs and of the result of kernels/requantize/channels.cl.
constexpr int kScaleRows = 3, kTableRows = 5;

Refusal wrong_scale_axis(int axis, int channel_axis) {
  return {Why::kQuantization,
          "weights tensor",
          {},
          "scales along axis " + std::to_string(axis),
          {"axis " + std::to_string(channel_axis) + ", that of the output channels"}};
}

}  // namespace

Multiplier quantize_multiplier(double real, Requantization requantization) {
  if (real == 0.0) return {};
  int shift = 0;
  const double mantissa = std::frexp(real, &shift);
  if (requantization == Requantization::kReal) {
    // No sum of 64 bits comes to one half below, and each but 0 to more than any result above.
    if (shift < -63) return {};
    return {static_cast<std::int64_t>(std::ldexp(mantissa, 53)), std::min(shift, 31)};
  }
  auto value = static_cast<std::int64_t>(std::round(mantissa * static_cast<double>(1LL << 31)));
  if (value == 1LL << 31) {
    value /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  return {value, shift};
}

double product_scale(const ir::Tensor& src, const ir::Tensor& weights, std::int64_t channel,
                     const ir::Tensor& dst, bool float_product) {
  const ir::Quantization& q = *weights.quantization;
  const float scale = q.per_axis() ? q.scales[uz(channel)] : q.scales.front();
  const double product = float_product
                             ? static_cast<double>(src.scale() * scale)
                             : static_cast<double>(src.scale()) * static_cast<double>(scale);
  return product / static_cast<double>(dst.scale());
}

Refusal wrong_scale(const tfl::TensorView& tensor, const std::string& what,
                    const std::string& scale, int zero_point) {
  return {Why::kQuantization,
          what,
          {},
          "the scale " + std::to_string(tensor.scale()) + " and the zero point " +
              std::to_string(tensor.zero_point()),
          {scale + " and " + std::to_string(zero_point)}};
}

IntRange range_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI16:
      return {-32768, 32767};
    default:
      throw_internal(__FILE__, __LINE__, "not a quantised type");
  }
}

IntRange activation_range(ir::Activation activation, const ir::Tensor& dst) {
  IntRange range = range_of(dst.dtype);
  const auto stored = [&](float real) {
    return dst.zero_point() + static_cast<std::int32_t>(std::round(real / dst.scale()));
  };
  switch (activation) {
    case ir::Activation::kNone:
      break;
    case ir::Activation::kRelu:
      range.low = std::max(range.low, stored(0.0F));
      break;
    case ir::Activation::kRelu6:
      range.low = std::max(range.low, stored(0.0F));
      range.high = std::min(range.high, stored(6.0F));
      break;
    case ir::Activation::kReluN1To1:
      range.low = std::max(range.low, stored(-1.0F));
      range.high = std::min(range.high, stored(1.0F));
      break;
    default:
      throw_internal(__FILE__, __LINE__, "an activation without bounds");
  }
  return range;
}

std::optional<Refusal> check_clamping(const ir::Epilogue& epilogue) {
  switch (epilogue.activation) {
    case ir::Activation::kNone:
    case ir::Activation::kRelu:
    case ir::Activation::kRelu6:
    case ir::Activation::kReluN1To1:
      return std::nullopt;
    default:
      return Refusal{Why::kActivation, "its fused activation", "is not defined on integers"};
  }
}

std::optional<Refusal> check_per_tensor(const tfl::TensorView& tensor, const std::string& what) {
  const auto quantization = tfl::quantization_of(tensor);
  if (quantization == nullptr) return Refusal{Why::kQuantization, what, "has no scale"};
  if (quantization->per_axis()) {
    return Refusal{Why::kQuantization,
                   what,
                   {},
                   std::to_string(quantization->scales.size()) + " scales",
                   {"one"}};
  }
  return std::nullopt;
}

std::int32_t fill_of(const ir::Tensor& tensor) {
  if (!tensor.is_quantized()) return 0;
  const auto zero = static_cast<std::uint32_t>(tensor.zero_point());
  switch (size_of(tensor.storage)) {
    case 1:
      return static_cast<std::int32_t>((zero & 0xFFU) * 0x01010101U);
    case 2:
      return static_cast<std::int32_t>((zero & 0xFFFFU) * 0x00010001U);
    default:
      return static_cast<std::int32_t>(zero);
  }
}

std::optional<Refusal> check_moved(const tfl::NodeView& node, int input) {
  const tfl::TensorView src = node.input(input);
  const auto from = tfl::quantization_of(src);
  const std::string name = "input " + std::to_string(input);
  const auto described = [](const std::shared_ptr<const ir::Quantization>& q) {
    if (q == nullptr) return std::string("no scale");
    return "the scale " + std::to_string(q->scales.front()) + " and the zero point " +
           std::to_string(q->zero_points.front());
  };
  if (from != nullptr && from->per_axis()) return check_per_tensor(src, name);
  for (int i = 0; i < node.output_count(); ++i) {
    const tfl::TensorView dst = node.output(i);
    if (dst.tflite_type() != src.tflite_type()) continue;
    const auto to = tfl::quantization_of(dst);
    if (to != nullptr && to->per_axis())
      return check_per_tensor(dst, "output " + std::to_string(i));
    const bool same = from == nullptr || to == nullptr
                          ? from == to
                          : from->scales == to->scales && from->zero_points == to->zero_points;
    if (same) continue;
    return Refusal{Why::kRescaling,
                   name,
                   "has " + described(from) + ", output " + std::to_string(i) + " has " +
                       described(to) + "; elements are moved as they are",
                   described(from),
                   {described(to)}};
  }
  return std::nullopt;
}

std::optional<Refusal> check_quantized_product(const tfl::NodeView& node,
                                               const ProductInputs& inputs) {
  const tfl::TensorView src = node.input(inputs.src), weights = node.input(inputs.weights);
  const tfl::TensorView dst = node.output(0);
  if (auto refusal = check_type(src, "input", {DType::kI8, DType::kU8, DType::kI16}))
    return refusal;
  const DType type = src.dtype();
  const bool wide = type == DType::kI16;
  if (auto refusal = check_type(weights, "weights tensor", {wide ? DType::kI8 : type}))
    return refusal;
  if (auto refusal = check_type(dst, "output", {type})) return refusal;
  if (auto refusal = check_per_tensor(src, "input")) return refusal;
  if (auto refusal = check_per_tensor(dst, "output")) return refusal;
  const auto scales = tfl::quantization_of(weights);
  if (scales == nullptr) return Refusal{Why::kQuantization, "weights tensor", "has no scale"};
  if (scales->per_axis() && scales->axis != inputs.channel_axis) {
    return wrong_scale_axis(scales->axis, inputs.channel_axis);
  }
  const bool shifted = std::any_of(scales->zero_points.begin(), scales->zero_points.end(),
                                   [](std::int32_t zero) { return zero != 0; });
  const bool may_shift = inputs.any_zero || weights.dtype() == DType::kU8;
  if (shifted && (!may_shift || scales->per_axis()))
    return Refusal{Why::kQuantization, "the weights", "have a zero point other than 0"};
  if (node.has_input(inputs.bias)) {
    const tfl::TensorView bias = node.input(inputs.bias);
    // With a bias of int32 the reference kernels sum int16 in 32 bits, and round otherwise.
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
  if (auto refusal = check_type(weights, "weights tensor", {DType::kI8})) return refusal;
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

kernel::Scratch uniform_channels(const Multiplier& multiplier, std::int64_t channels,
                                 std::int32_t start) {
  const std::int64_t pitch = round_up(channels, 16);
  std::vector<std::int32_t> rows(uz(kTableRows * pitch), 0);
  for (std::int64_t o = 0; o < pitch; ++o) {
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

kernel::Launch& push_channels(kernel::Launch& launch, const NodeContext& node,
                              const ChannelTable& table) {
  if (!is_hybrid(node)) return push_channels(launch, node, table.index, table.pitch);
  const ir::Shape& dst = node.output(0).shape;
  const ResultLayout layout = result_layout(node);
  const std::int64_t pixels =
      dst.elements() / dst.back(0) / node.input(kRowFactors).shape[0];  // of a row
  launch.scratch_in(table.index).i32(table.pitch).src(kRowFactors);
  launch.i32(layout.first).i32(pixels * (layout.sliced ? layout.pitch : dst.back(0)));
  if (node.has_input(table.bias)) launch.src(table.bias);
  if (node.residual() >= 0) launch.src(node.residual());
  return launch;
}

kernel::Launch& push_channels(kernel::Launch& launch, const NodeContext& node, int index,
                              std::int64_t channels) {
  const ir::Tensor own = own_result(node);
  const IntRange range = activation_range(node.epilogue().activation, own);
  launch.scratch_in(index).i32(round_up(channels, 16));
  launch.i32(own.zero_point()).i32(range.low).i32(range.high);
  if (node.residual() < 0) return launch;
  const ir::Tail& tail = *node.node().tail;
  ir::Tensor addend = own, sum = own;
  if (node.epilogue().residual_after) addend.quantization = tail.looked_up;
  sum.quantization = tail.sum;
  launch.src(node.residual());
  return push_pair(launch, pair_scaling(BinaryOp::kAdd, addend, node.input(node.residual()), sum,
                                        tail.sum_activation));
}

}  // namespace clgpu::ops
