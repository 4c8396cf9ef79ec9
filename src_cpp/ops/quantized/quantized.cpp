#include "ops/quantized/quantized.hpp"

#include <algorithm>
#include <cmath>

namespace clgpu::ops {
Multiplier quantize_multiplier(double real, Requantization requantization) {
  if (real == 0.0) return {};
  int shift = 0;
  const double mantissa = std::frexp(real, &shift);
  if (requantization == Requantization::kReal) {
    // Below a shift of -63, no 64-bit sum reaches one half. Above 31, every sum except 0 exceeds
    // all results.
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

std::string clamping_problem(const ir::Graph&, ir::Node& node) {
  const auto refusal = check_clamping(node.epilogue);
  return refusal ? sentence_of(*refusal) : std::string();
}

const IntegerForm kMovedIntegers{{0}, true, nullptr};

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

}  // namespace clgpu::ops
