#include "ops/quantized/lookup.hpp"

#include <cmath>
#include <string>

#include "ops/quantized/lookup_functions.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

Ends ends_of(const ir::Tensor& src, const ir::Tensor& dst) {
  if (!src.is_quantized() || !dst.is_quantized()) return {1, 1, 0, 0, range_of(dst.dtype)};
  return {src.scale(), dst.scale(), src.zero_point(), dst.zero_point(), range_of(dst.dtype)};
}

/// RELU and its variants: rescaled, then clamped.
struct Clamped {
  Clamped(int builtin, const Ends& given) : ends(given) {
    factor = quantize_multiplier(static_cast<double>(ends.src_scale / ends.dst_scale));
    const auto stored = [&](float x) {
      return ends.dst_zero + static_cast<std::int32_t>(std::round(x / ends.dst_scale));
    };
    const float low = builtin == kReluN1To1 ? -1.0F : 0.0F;
    const float high = builtin == kRelu6 ? 6.0F : 1.0F;
    range = {std::max(ends.dst.low, stored(low)), ends.dst.high};
    if (builtin != kRelu) range.high = std::min(range.high, stored(high));
  }
  std::int16_t at(int x) const {
    const std::int32_t y = ends.dst_zero + rescaled(x - ends.src_zero, factor);
    return static_cast<std::int16_t>(std::min(std::max(y, range.low), range.high));
  }
  Ends ends;
  Multiplier factor;
  IntRange range{};
};

struct LeakyRelu {
  LeakyRelu(float alpha, const Ends& given) : ends(given), negative(alpha < 0.0F) {
    factor = quantize_multiplier(static_cast<double>(ends.src_scale / ends.dst_scale));
    const float slope = ends.src_scale * alpha / ends.dst_scale;
    slope_factor = quantize_multiplier(static_cast<double>(std::abs(slope)));
  }
  std::int16_t at(int x) const {
    const std::int32_t moved = x - ends.src_zero;
    const std::int32_t y = rescaled(moved, moved >= 0 ? factor : slope_factor);
    return ends.clamped(ends.dst_zero + (moved < 0 && negative ? -y : y));
  }
  Ends ends;
  bool negative;
  Multiplier factor, slope_factor;
};

struct Absolute {
  explicit Absolute(const Ends& given) : ends(given) {
    factor = quantize_multiplier(static_cast<double>(ends.src_scale / ends.dst_scale));
  }
  std::int16_t at(int x) const {
    const std::int32_t size = std::abs(x - ends.src_zero);
    const bool same = ends.src_scale == ends.dst_scale;
    return ends.clamped((same ? size : rescaled(size, factor)) + ends.dst_zero);
  }
  Ends ends;
  Multiplier factor;
};

/// Of int16 without a scale.
struct Magnitude {
  std::int16_t at(int x) const { return static_cast<std::int16_t>(std::abs(x)); }  // wraps
};

struct SquareRoot {
  std::int16_t at(int x) const {
    // The reference kernel stops at negative numbers; here their result is that of 0.
    const float value = std::max(ends.src_scale * static_cast<float>(x - ends.src_zero), 0.0F);
    return ends.clamped(static_cast<std::int32_t>(std::sqrt(value) / ends.dst_scale) +
                        ends.dst_zero);
  }
  Ends ends;
};

/// RSQRT of int8.
struct InverseRoot {
  explicit InverseRoot(const Ends& given) : ends(given) {
    const auto root = static_cast<double>(std::sqrt(ends.src_scale) * ends.dst_scale);
    factor = quantize_multiplier(1.0 / root);
  }
  std::int16_t at(int x) const {
    constexpr int kShift = 20;
    const std::int32_t value = x - ends.src_zero;
    if (value <= 0) return ends.clamped(ends.dst.high);
    Multiplier inverse = inverse_square_root(value);
    inverse.shift += kShift;
    Multiplier scale = factor;
    scale.shift -= kShift;
    return ends.clamped(rescaled(rescaled(1, inverse), scale) + ends.dst_zero);
  }
  Ends ends;
  Multiplier factor;
};

template <class Function>
std::vector<std::int16_t> filled(const IntRange& stored, const Function& function) {
  std::vector<std::int16_t> table(uz(stored.high - stored.low + 1));
  for (std::int32_t x = stored.low; x <= stored.high; ++x)
    table[uz(x) & (table.size() - 1)] = function.at(x);
  return table;
}

struct Negated {
  std::int16_t at(int x) const { return static_cast<std::int16_t>(-x); }  // wraps, scales or not
};

struct Tabulated {
  std::int16_t at(int x) const { return tabulated(function, ends, x); }
  TableFunction function;
  Ends ends;
};

}  // namespace

std::optional<Refusal> check_unary_input(const tfl::TensorView& src, int builtin) {
  using T = DType;
  constexpr int kFloor = 8, kSin = 66, kCos = 108;
  switch (builtin) {
    case kRelu:
    case kRelu6:
    case kLeakyRelu:
      return check_type(src, "input", {T::kF32, T::kI8, T::kU8, T::kI16});
    case kGelu:
    case kLogistic:
    case kTanh:
      return check_type(src, "input", {T::kF32, T::kF16, T::kBF16, T::kI8, T::kU8, T::kI16});
    case kReluN1To1:
    case kRelu0To1:
    case kHardSwish:
      return check_type(src, "input", {T::kF32, T::kI8, T::kU8});
    case kElu:
      return check_type(src, "input", {T::kF32, T::kI8});
    case kExp:
    case kLog:
    case kSqrt:
    case kRsqrt:
      return check_type(src, "input", {T::kF32, T::kI8, T::kI16});
    case kNeg:
      return check_type(src, "input",
                        {T::kF32, T::kF16, T::kBF16, T::kI32, T::kI64, T::kI8, T::kI16});
    case kAbs:
      return check_type(src, "input", {T::kF32, T::kI32, T::kI64, T::kI8, T::kI16});
    case kSquare:
    case kSign:
      return check_type(src, "input", {T::kF32, T::kI32, T::kI64});
    case kSin:
    case kCos:
    case kFloor:
      return check_type(src, "input", {T::kF32, T::kF16, T::kBF16});
    default:
      return check_type(src, "input", {T::kF32});
  }
}

std::optional<Refusal> check_table(const tfl::NodeView& node, const TableFunction& function) {
  const tfl::TensorView src = node.input(0), dst = node.output(0);
  if (auto refusal = check_type(dst, "output", {src.dtype()})) return refusal;
  if (function.builtin == kNeg) return std::nullopt;
  const bool plain = !src.is_quantized() && !dst.is_quantized();
  if (function.builtin == kAbs && src.dtype() == DType::kI16 && plain) return std::nullopt;
  if (auto refusal = check_per_tensor(src, "input")) return refusal;
  if (auto refusal = check_per_tensor(dst, "output")) return refusal;
  const bool wide = src.dtype() == DType::kI16;
  const auto wrong_scale = [&](const char* allowed) {
    return Refusal{
        Why::kQuantization, "output", {}, "the scale " + std::to_string(dst.scale()), {allowed}};
  };
  switch (function.builtin) {
    case kLogistic:
      if (dst.scale() != (wide ? 1.0F / 32768 : 1.0F / 256))
        return wrong_scale(wide ? "1/32768" : "1/256");
      break;
    case kTanh:
      if (wide && log2_of(dst.scale()) != -15) return wrong_scale("1/32768");
      break;
    case kHardSwish: {
      const Ends ends{src.scale(), dst.scale(), src.zero_point(), dst.zero_point(),
                      range_of(dst.dtype())};
      if (!HardSwish(ends).allowed()) return wrong_scale("at least 1/128 of the input's");
      break;
    }
    default:
      break;
  }
  return std::nullopt;
}

std::string scale_needed(const TableFunction& function, const ir::Tensor& src,
                         const ir::Tensor& dst) {
  if (function.builtin == kLogistic && dst.scale() != 1.0F / 256) return "1/256";
  if (function.builtin == kHardSwish && !HardSwish(ends_of(src, dst)).allowed())
    return "at least 1/128 of the input's";
  return {};
}

std::vector<std::int16_t> table_of(const TableFunction& f, const ir::Tensor& src,
                                   const ir::Tensor& dst) {
  const Ends ends = ends_of(src, dst);
  const IntRange stored = range_of(src.dtype);
  const bool wide = src.dtype == DType::kI16;
  switch (f.builtin) {
    case kRelu:
    case kRelu6:
    case kReluN1To1:
    case kRelu0To1:
      return filled(stored, Clamped(f.builtin, ends));
    case kLeakyRelu:
      return filled(stored, LeakyRelu(f.alpha, ends));
    case kHardSwish:
      return filled(stored, HardSwish(ends));
    case kAbs:
      if (!src.is_quantized()) return filled(stored, Magnitude{});
      return filled(stored, Absolute(ends));
    case kNeg:
      return filled(stored, Negated{});
    case kSqrt:
      return filled(stored, SquareRoot{ends});
    case kRsqrt:
      if (!wide) return filled(stored, InverseRoot(ends));
      break;
    case kLogistic:
    case kTanh:
      if (wide) return filled(stored, Sigmoid(f, ends));
      break;
    default:
      break;
  }
  if (wide) return filled(stored, Interpolated(f, ends));
  return filled(stored, Tabulated{f, ends});
}

kernel::Scratch table_scratch(const TableFunction& function, const ir::Tensor& src,
                              const ir::Tensor& dst) {
  const std::vector<std::int16_t> table = table_of(function, src, dst);
  if (dst.dtype == DType::kI16) return kernel::table(table);
  std::vector<std::int8_t> bytes;
  for (const std::int16_t result : table) bytes.push_back(static_cast<std::int8_t>(result));
  return kernel::table(bytes);
}

}  // namespace clgpu::ops
