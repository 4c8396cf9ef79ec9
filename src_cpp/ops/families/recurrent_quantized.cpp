// LSTMs of integers: inputs, weights and results of int8, cells and gates of int16.
#include <algorithm>
#include <cmath>

#include "ops/families/recurrent.hpp"
#include "ops/quantized/fixed_point.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops::recurrent {
namespace {

// Functions of numbers of 16 bits, in the fixed-point arithmetic of the reference kernels. Q(m) is
// a number times 2^(15 - m).

using Short = std::int16_t;

constexpr Short kOne = 32767;

Short wrapped(int x) { return static_cast<Short>(x); }
Short mul(Short a, Short b) { return doubled_high<Short>(a, b); }
/// A constant of 32 bits.
Short constant(std::int32_t x) { return wrapped(shifted<std::int32_t>(x, 16)); }

/// exp(a) in Q0 of an a <= 0 in Q(bits).
Short exp_of(Short a, int bits) {
  if (a == 0) return kOne;
  const int fraction = 15 - bits, quarter = 1 << (fraction - 2);
  if (bits > 5 && a < constant(-(1 << (36 - bits)))) return 0;
  const Short part = wrapped((a & (quarter - 1)) - quarter);
  // Taylor's series around -1/8
  const Short x = wrapped(shifted_left<Short>(part, bits) + (1 << 12));
  const Short x2 = mul(x, x), x3 = mul(x2, x), x4 = mul(x2, x2);
  const Short cubes = mul(wrapped(shifted<Short>(x4, 2) + x3), constant(715827883));
  const Short tail = shifted<Short>(wrapped(cubes + x2), 1);
  const Short middle = constant(1895147668);
  Short result = wrapped(std::clamp(middle + mul(middle, wrapped(x + tail)), -32768, 32767));
  constexpr std::int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308,
                                      39332535,   720401,     242};  // exp(-2^i), i from -2 to 4
  const Short rest = wrapped(part - a);
  for (int i = -2; i < std::min(bits, 5); ++i) {
    if ((rest & (1 << (fraction + i))) != 0) result = mul(result, constant(kPowers[i + 2]));
  }
  return result;
}

/// 1 / ((1 + a) / 2) in Q2 of an a in Q0, not negative.
Short half_inverse(Short a) {
  const Short half = wrapped((a + kOne + 1) / 2);
  Short x = wrapped(constant(1515870810) + mul(half, constant(-1010580540)));
  for (int i = 0; i < 3; ++i) {
    const Short rest = wrapped((1 << 13) - mul(half, x));
    x = wrapped(x + shifted_left<Short>(mul(x, rest), 2));
  }
  return x;
}

/// In Q0 of an x in Q3.
Short sigmoid_of(Short x) {
  if (x == 0) return 1 << 14;
  const Short size = x > 0 ? x : wrapped(-x);
  const Short y = shifted_left<Short>(half_inverse(exp_of(wrapped(-size), 3)), 1);
  return x > 0 ? y : wrapped(kOne - y);
}

/// In Q0 of an x in Q(bits).
Short tanh_of(Short x, int bits) {
  if (x == 0) return 0;
  const Short negative = x < 0 ? x : wrapped(-x);
  const Short inverse = half_inverse(exp_of(negative, bits + 1));
  const Short y = shifted_left<Short>(wrapped(inverse - (1 << 13)), 2);
  return x < 0 ? wrapped(-y) : y;
}

constexpr int kGateBits = 3;

std::vector<Short> functions(int cell_bits) {
  std::vector<Short> table;
  const auto add = [&](auto function) {
    for (int i = 0; i < 65536; ++i) table.push_back(function(wrapped(i)));
  };
  add(sigmoid_of);
  add([](Short x) { return tanh_of(x, kGateBits); });
  add([&](Short x) { return tanh_of(x, cell_bits); });
  return table;
}

class Integers : public Layer {
 public:
  Integers(Builder& builder, const NodeContext& node, const Direction& d, const DeviceInfo& device)
      : Layer(builder, node, d, device, {DType::kI32, DType::kI16, DType::kI8, DType::kI16}) {}

 private:
  float scale(int slot) const { return has(slot) ? node_.input(slot).scale() : 1.0F; }
  int cell_scale() const { return log2_of(scale(d_.c)).value(); }

  void add_tables() override {
    scales_ = b_.scratch(kernel::table(scales()));
    functions_ = b_.scratch(kernel::table(functions(15 + cell_scale())));
  }

  // In the arithmetic of the reference kernel, which mixes float and double.
  std::vector<std::int32_t> scales() const {
    std::vector<std::int32_t> table, least;
    const auto add = [&](float real) {
      const Multiplier m = quantize_multiplier(real);
      table.push_back(static_cast<std::int32_t>(m.value));
      table.push_back(m.shift);
    };
    for (const int gate : gates_) {
      const auto g = uz(gate);
      const float sum = has_norm() ? attrs().norm_scales[g] : 1.0F / 4096.0F;
      add(scale(d_.wx[g]) * scale(d_.x) / sum);
      add(scale(d_.wh[g]) * scale(d_.h) / sum);
      add(static_cast<float>(std::pow(2, cell_scale()) * scale(d_.peephole[g]) / sum));
      const float norm = scale(d_.norm[g]);
      add(norm);
      least.push_back(std::max(1, static_cast<std::int32_t>(10000 * norm)));
    }
    table.insert(table.end(), least.begin(), least.end());
    return table;
  }

  Clips clips() const override {
    const auto clip = [](float limit, float scale, float most) {
      return limit > 0 ? std::trunc(std::min(std::max(limit / scale, -most - 1), most)) : 0.0F;
    };
    return {clip(attrs().cell_clip, scale(d_.c), 32767.0F),
            clip(attrs().proj_clip, node_.output(d_.dst).scale(), 127.0F)};
  }

  void add_arithmetic(kernel::Launch& launch) const override {
    const float hidden_scale = attrs().hidden_scale;
    const Multiplier hidden =
        quantize_multiplier(static_cast<float>(std::pow(2, -15) / hidden_scale * std::pow(2, -15)));
    Multiplier projection;
    if (has(d_.projection))
      projection = quantize_multiplier(scale(d_.projection) * hidden_scale / scale(d_.h));
    launch.scratch_in(functions_).i32(node_.input(d_.h).zero_point()).i32(30 + cell_scale());
    launch.i32(hidden.value).i32(hidden.shift).i32(attrs().hidden_zero);
    launch.i32(projection.value).i32(projection.shift);
  }

  int functions_ = -1;  // scratch buffer
};

}  // namespace

std::optional<Refusal> check_quantized(const tfl::NodeView& node, const Direction& d) {
  const auto has = [&](int slot) { return slot >= 0 && node.has_input(slot); };
  const auto check = [&](int slot, DType type, int rank) -> std::optional<Refusal> {
    if (!has(slot)) return std::nullopt;
    const tfl::TensorView tensor = node.input(slot);
    const std::string what = "input " + std::to_string(slot);
    if (auto refusal = check_type(tensor, what, {type})) return refusal;
    if (rank > 0) {
      if (auto refusal = check_rank(tensor, what, rank, rank)) return refusal;
    }
    if (type == DType::kI32) return std::nullopt;
    if (auto refusal = check_per_tensor(tensor, what)) return refusal;
    if (slot != d.x && slot != d.h && tensor.zero_point() != 0)
      return wrong_scale(tensor, what, "any", 0);
    return std::nullopt;
  };
  for (int gate = 0; gate < kGates; ++gate) {
    const auto g = uz(gate);
    for (const auto& [slot, type, rank] : {std::tuple{d.wx[g], DType::kI8, 2},
                                           {d.wh[g], DType::kI8, 2},
                                           {d.bias[g], DType::kI32, 1},
                                           {d.peephole[g], DType::kI16, 1},
                                           {d.norm[g], DType::kI16, 1}}) {
      if (auto refusal = check(slot, type, rank)) return refusal;
    }
  }
  for (const auto& [slot, type, rank] : {std::tuple{d.projection, DType::kI8, 2},
                                         {d.projection_bias, DType::kI32, 1},
                                         {d.h, DType::kI8, 0},
                                         {d.c, DType::kI16, 0}}) {
    if (auto refusal = check(slot, type, rank)) return refusal;
  }
  if (auto refusal = check_per_tensor(node.output(0), "output 0")) return refusal;
  const tfl::TensorView cell = node.input(d.c);
  const auto scale = log2_of(cell.scale());
  // The range of the reference kernel's tanh.
  if (!scale || *scale < -15 || *scale > -9)
    return wrong_scale(cell, "input " + std::to_string(d.c), "2^-15, 2^-14 .. 2^-9", 0);
  if (has(d.peephole[1]) && has(d.projection)) {
    return Refusal{Why::kOperands, "input " + std::to_string(d.projection),
                   "is a projection of cells with peephole weights, which the reference kernel of "
                   "integers reads beyond their end"};
  }
  return std::nullopt;
}

std::unique_ptr<Layer> quantized_layer(Builder& builder, const NodeContext& node,
                                       const Direction& d, const DeviceInfo& device) {
  return std::make_unique<Integers>(builder, node, d, device);
}

}  // namespace clgpu::ops::recurrent
