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

constexpr int kDirection = 0;

class Integers {
 public:
  Integers(const NodeContext& node, const DeviceInfo& device)
      : node_(node),
        device_(device),
        attrs_(node.attrs<RecurrentAttrs>()),
        all_(directions(node)),
        d_(all_[kDirection]),
        size_(sizes_of(node, d_)),
        gates_(gates_of(node, d_)),
        cols_(size_.cells * static_cast<int>(gates_.size())) {}

  kernel::Candidate make(bool step_by_step) {
    b_ = {{step_by_step ? "step_by_step_int8" : "sequence_int8", {}, {}}};
    wx_ = packed(b_, node_, of(d_.wx));
    wh_ = packed(b_, node_, of(d_.wh));
    if (has(d_.projection)) wp_ = packed(b_, node_, {d_.projection});
    vectors();
    scales_ = b_.scratch(kernel::table(scales()));
    functions_ = b_.scratch(kernel::table(functions(15 + cell_scale())));
    pre_ = b_.scratch(std::int64_t{size_.rows()} * cols_ * 2);
    memory_ = -1;
    const bool one = size_.steps == 1;
    if (!step_by_step || !one) product(true, false, 0);
    if (!step_by_step) {
      steps(true, 0);
      return b_.candidate;
    }
    if (!one) {
      h_ = b_.scratch(std::int64_t{size_.batch} * size_.outputs);
      c_ = b_.scratch(std::int64_t{size_.batch} * size_.cells * 2);
    }
    for (int step = 0; step < size_.steps; ++step) {
      product(one, true, step);
      steps(false, step);
    }
    return b_.candidate;
  }

  Ways ways() const { return ways_of(size_.steps, std::int64_t{cols_} * size_.outputs, device_); }

 private:
  bool has(int slot) const { return slot >= 0 && node_.has_input(slot); }
  bool has_norm() const { return has(d_.norm[1]); }
  bool has_peephole() const { return has(d_.peephole[1]); }
  std::vector<int> of(const Slots& slots) const {
    std::vector<int> result;
    for (const int gate : gates_) result.push_back(slots[uz(gate)]);
    return result;
  }
  float scale(int slot) const { return has(slot) ? node_.input(slot).scale() : 1.0F; }
  int cell_scale() const { return log2_of(scale(d_.c)).value(); }

  void vector(int slot, std::int64_t first) {
    if (!has(slot)) return;
    const ir::Tensor& tensor = node_.input(slot);
    kernel::Launch launch("recurrent/pack.cl", "recurrent_vector");
    launch.type("SRC_T", tensor.storage).type("DST_T", DType::kI32);
    const std::int64_t count = tensor.shape.elements();
    launch.src(slot).scratch_out(vectors_).i32(count).i32(first).i32(1);
    b_.candidate.launches.push_back(launch.range({uz(count)}, {kElementwiseGroup}));
  }

  void vectors() {
    const int cells = size_.cells;
    vectors_ = b_.scratch(std::int64_t{4} * (2 * cols_ + 3 * cells + size_.outputs));
    const std::int64_t peephole = cols_, norm = peephole + 3 * cells;
    for (std::size_t i = 0; i < gates_.size(); ++i) {
      const auto first = static_cast<std::int64_t>(i) * cells;
      vector(d_.bias[uz(gates_[i])], first);
      vector(d_.norm[uz(gates_[i])], norm + first);
    }
    vector(d_.peephole[0], peephole);
    vector(d_.peephole[1], peephole + cells);
    vector(d_.peephole[3], peephole + 2 * cells);
    vector(d_.projection_bias, norm + cols_);
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
      const float sum = has_norm() ? attrs_.norm_scales[g] : 1.0F / 4096.0F;
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

  // The products of the inputs of all steps, or of one step, with those of its state, or these
  // only.
  void product(bool input, bool state, int step) {
    kernel::Launch launch("recurrent/quantized_product.cl", "recurrent_quantized_product");
    const bool whole = input && !state;
    const int rows = whole ? size_.rows() : size_.batch;
    launch.macro("INPUT", input ? 1 : 0).macro("STATE", state ? 1 : 0);
    launch.macro("BIAS", has_norm() ? 0 : 1);
    if (input) {
      launch.src(d_.x).scratch_in(wx_).i32(size_.inputs).i32(node_.input(d_.x).zero_point());
    }
    if (state) {
      if (step > 0) {
        launch.scratch_in(h_);
      } else {
        launch.src(d_.h);
      }
      launch.scratch_in(wh_).i32(size_.outputs).i32(node_.input(d_.h).zero_point());
    }
    launch.scratch_in(vectors_).scratch_in(scales_);
    if (input) {
      launch.scratch_out(pre_);
    } else {
      launch.scratch_inout(pre_);
    }
    launch.i32(rows).i32(cols_).i32(size_.cells);
    if (whole) {
      launch.i32(0).i32(1);
    } else {
      launch.i32(std::int64_t{step} * size_.t_stride).i32(size_.b_stride);
    }
    add_groups(launch, rows);
    b_.candidate.launches.push_back(launch);
  }

  void add_groups(kernel::Launch& launch, int rows) const {
    const int per_item = rows >= 8 ? 8 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
    const std::size_t group = group_of(device_.is_cpu() ? 32 : 256, device_);
    const std::size_t wx = std::min<std::size_t>(32, group), wy = group / wx;
    launch.macro("ROWS", per_item);
    launch.macro("WX", static_cast<std::int64_t>(wx)).macro("WY", static_cast<std::int64_t>(wy));
    const std::size_t columns = uz(ceil_div(cols_, static_cast<std::int64_t>(wx)));
    launch.range({columns * group, uz(ceil_div(rows, per_item))}, {group, 1});
  }

  void steps(bool all, int step) {
    const bool first = all || step == 0, last = all || step == size_.steps - 1;
    kernel::Launch launch("recurrent/quantized_sequence.cl", "recurrent_quantized_sequence");
    launch.macro("GATES", static_cast<std::int64_t>(gates_.size())).macro("FUSED", all ? 1 : 0);
    launch.macro("PEEPHOLE", has_peephole() ? 1 : 0).macro("NORM", has_norm() ? 1 : 0);
    launch.macro("PROJECTION", !has(d_.projection) ? 0 : has(d_.projection_bias) ? 2 : 1);
    launch.scratch_in(pre_);
    if (all) launch.src(d_.h).scratch_in(wh_).i32(node_.input(d_.h).zero_point());
    if (first) {
      launch.src(d_.c);
    } else {
      launch.scratch_in(c_);
    }
    if (last) {
      launch.dst(d_.c_out);
    } else {
      launch.scratch_out(c_);
    }
    const auto clip = [](float limit, float scale, float most) {
      return limit > 0 ? static_cast<int>(std::min(std::max(limit / scale, -most - 1), most)) : 0;
    };
    if (has(d_.projection)) {
      const Multiplier m =
          quantize_multiplier(scale(d_.projection) * attrs_.hidden_scale / scale(d_.h));
      launch.scratch_in(wp_).i32(m.value).i32(m.shift).i32(node_.input(d_.h).zero_point());
      launch.i32(clip(attrs_.proj_clip, node_.output(d_.dst).scale(), 127.0F));
    }
    if (last) {
      launch.dst(d_.h_out);
    } else {
      launch.scratch_out(h_);
    }
    launch.scratch_in(vectors_).scratch_in(scales_).scratch_in(functions_).dst(d_.dst);
    const std::size_t group = group_for(cols_, device_);
    constexpr std::int64_t kMoments = 12;
    const std::int64_t ints = cols_ + size_.outputs + size_.cells + kMoments;
    const bool local = uz(ints * 4) <= device_.local_bytes;
    launch.macro("SHARED", local ? "local" : "global");
    if (local) {
      launch.local_memory(uz(ints * 4));
    } else {
      if (memory_ < 0) memory_ = b_.scratch(size_.batch * ints * 4);
      launch.scratch_inout(memory_);
    }
    launch.i32(ints).i32(all ? size_.steps : 1).i32(size_.cells).i32(size_.outputs);
    launch.i32(size_.t_stride).i32(size_.b_stride).i32(step);
    launch.i32(30 + cell_scale()).i32(clip(attrs_.cell_clip, scale(d_.c), 32767.0F));
    const Multiplier hidden = quantize_multiplier(
        static_cast<float>(std::pow(2, -15) / attrs_.hidden_scale * std::pow(2, -15)));
    launch.i32(hidden.value).i32(hidden.shift).i32(attrs_.hidden_zero);
    launch.macro("WG", static_cast<std::int64_t>(group));
    b_.candidate.launches.push_back(launch.range({uz(size_.batch) * group}, {group}));
  }

  const NodeContext& node_;
  const DeviceInfo& device_;
  const RecurrentAttrs& attrs_;
  std::vector<Direction> all_;
  const Direction& d_;
  Sizes size_;
  std::vector<int> gates_;
  int cols_;
  Builder b_{};
  // Scratch buffers.
  int wx_ = -1, wh_ = -1, wp_ = -1, vectors_ = -1, scales_ = -1, functions_ = -1, pre_ = -1;
  int h_ = -1, c_ = -1, memory_ = -1;
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

std::vector<kernel::Candidate> quantized_candidates(const NodeContext& node,
                                                    const DeviceInfo& device) {
  Integers integers(node, device);
  const Ways ways = integers.ways();
  if (!ways.step_by_step) return {integers.make(false)};
  return {integers.make(ways.step_by_step_first), integers.make(!ways.step_by_step_first)};
}

}  // namespace clgpu::ops::recurrent
