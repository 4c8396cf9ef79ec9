#include "ops/quantized_binary.hpp"

#include <algorithm>

#include "ops/fixed_point.hpp"

namespace clgpu::ops {
namespace {

double real(float scale) { return static_cast<double>(scale); }

bool is_sum(BinaryOp op) { return op == BinaryOp::kAdd || op == BinaryOp::kSub; }

/// By how much a and b are shifted to the right; nullopt where that is not what is asked for.
std::optional<std::pair<int, int>> shifts_of(float a, float b, float dst) {
  const auto log_a = log2_of(a), log_b = log2_of(b), log_dst = log2_of(dst);
  if (!log_a || !log_b || !log_dst) return std::nullopt;
  return std::pair{*log_dst - *log_a, *log_dst - *log_b};
}

PairScaling sum_scaling(BinaryOp op, float a, float b, float dst, bool wide) {
  PairScaling scaling;
  const bool square = op == BinaryOp::kSquaredDifference;
  scaling.left = square ? 7 : wide ? 15 : 20;
  const double twice = real(2 * std::max(a, b));
  scaling.a = quantize_multiplier(real(a) / twice);
  scaling.b = quantize_multiplier(real(b) / twice);
  const float unit = static_cast<float>(1 << (square ? 14 : scaling.left)) * dst;
  scaling.result = quantize_multiplier((square ? twice * twice : twice) / real(unit));
  return scaling;
}

PairScaling scaling_of(BinaryOp op, float a, float b, float dst, bool wide) {
  PairScaling scaling;
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kSquaredDifference:
      return sum_scaling(op, a, b, dst, wide);
    case BinaryOp::kMul:  // these products and quotients are floats in the reference kernels, too
      scaling.result = quantize_multiplier(real(a * b / dst));
      break;
    case BinaryOp::kDiv:
      scaling.result = quantize_multiplier(real(a / (b * dst)));
      break;
    case BinaryOp::kPrelu:
      scaling.a = quantize_multiplier(real(a / dst));
      scaling.result = quantize_multiplier(real(a * b / dst));
      break;
    default:
      break;
  }
  return scaling;
}

}  // namespace

PairScaling pair_scaling(BinaryOp op, const ir::Tensor& a, const ir::Tensor& b,
                         const ir::Tensor& dst, ir::Activation activation) {
  PairScaling scaling = scaling_of(op, a.scale(), b.scale(), dst.scale(), dst.dtype == DType::kI16);
  scaling.a_zero = a.zero_point();
  scaling.b_zero = b.zero_point();
  scaling.zero = dst.zero_point();
  scaling.range = activation_range(activation, dst);
  return scaling;
}

kernel::Launch& push_pair(kernel::Launch& launch, const PairScaling& scaling) {
  launch.i32(scaling.left);
  launch.i32(scaling.a_zero).i32(scaling.a.value).i32(scaling.a.shift);
  launch.i32(scaling.b_zero).i32(scaling.b.value).i32(scaling.b.shift);
  launch.i32(scaling.result.value).i32(scaling.result.shift);
  return launch.i32(scaling.zero).i32(scaling.range.low).i32(scaling.range.high);
}

std::optional<Refusal> check_quantized_binary(const tfl::NodeView& node, BinaryOp op,
                                              bool* shifts) {
  const tfl::TensorView a = node.input(0), b = node.input(1), dst = node.output(0);
  if (auto refusal = check_type(dst, "output", {a.dtype()})) return refusal;
  if (op == BinaryOp::kMaximum || op == BinaryOp::kMinimum) return std::nullopt;
  if (auto refusal = check_per_tensor(a, "input 0")) return refusal;
  if (auto refusal = check_per_tensor(b, "input 1")) return refusal;
  if (auto refusal = check_per_tensor(dst, "output")) return refusal;
  const bool wide = a.dtype() == DType::kI16;
  const float scale_a = a.scale(), scale_b = b.scale(), scale_dst = dst.scale();
  const PairScaling scaling = scaling_of(op, scale_a, scale_b, scale_dst, wide);
  const bool sums = is_sum(op) || op == BinaryOp::kSquaredDifference;
  const auto* params = node.params<tfl::AddParams>();
  if (is_sum(op) && wide && params != nullptr && params->pot_scale_int16) {
    if (const auto by = shifts_of(scale_a, scale_b, scale_dst)) {
      const auto [by_a, by_b] = *by;
      if (by_a < 0 || by_b < 0 || by_a > 15 || by_b > 15 || (by_a != 0 && by_b != 0))
        return Refusal{Why::kQuantization, "",
                       "the inputs' scales, powers of two, are greater than the output's"};
      if (op == BinaryOp::kAdd && a.dims() != b.dims())
        return Refusal{Why::kQuantization, "",
                       "int16 with scales that are powers of two is not broadcast"};
      *shifts = true;
      return std::nullopt;
    }
  }
  if (scaling.result.shift > (sums ? 0 : 30) || scaling.a.shift > 30)
    return Refusal{Why::kQuantization, "the scale of the output",
                   "is too small for that of the inputs"};
  return std::nullopt;
}

kernel::Candidate quantized_binary(const NodeContext& node) {
  const auto& attrs = node.attrs<BinaryAttrs>();
  const ir::Tensor &a = node.input(0), &b = node.input(1), &dst = node.output(0);
  const BroadcastWalk walk = broadcast_walk(dst.shape, {a.shape, b.shape});
  const ResultLayout layout = result_layout(node);
  int width = 1;
  for (const int w : {4, 16}) {
    if (attrs.op == BinaryOp::kDiv) break;
    const bool runs = walk.dims.size() == 1 || walk.dims.back() % w == 0;
    if (runs && layout.aligned(w) && (!layout.sliced || layout.channels % w == 0)) width = w;
  }
  PairScaling scaling;
  if (attrs.op != BinaryOp::kMaximum && attrs.op != BinaryOp::kMinimum)
    scaling = pair_scaling(attrs.op, a, b, dst, node.epilogue().activation);
  if (attrs.shifts) {
    const auto by = shifts_of(a.scale(), b.scale(), dst.scale());
    scaling.a.shift = -by->first;
    scaling.b.shift = -by->second;
  }
  kernel::Launch launch("binary/quantized.cl", "binary_quantized");
  launch.type("A_T", a.storage).type("B_T", b.storage).type("DST_T", dst.storage);
  launch.macro("OP", static_cast<int>(attrs.op));
  launch.macro("WIDTH", width).macro("SHIFTS", attrs.shifts ? 1 : 0);
  push_result(launch.src(0).src(1), layout);
  push_pair(launch, scaling);
  walk.append_to(launch);
  launch.range({uz(ceil_div(walk.elements(), width))}, {kElementwiseGroup});
  kernel::Candidate candidate{"quantized", {launch}, {}};
  for (int i = 0; i < 2; ++i) {
    if (node.input(i).shape == dst.shape) candidate.in_place.push_back(i);
  }
  return candidate;
}

}  // namespace clgpu::ops
