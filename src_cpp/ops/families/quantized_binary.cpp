#include "ops/families/quantized_binary.hpp"

#include "ops/quantized/fixed_point.hpp"

namespace clgpu::ops {
namespace {

bool is_sum(BinaryOp op) { return op == BinaryOp::kAdd || op == BinaryOp::kSub; }

/// The right shifts of a and b; nullopt unless all scales are powers of two.
std::optional<std::pair<int, int>> shifts_of(float a, float b, float dst) {
  const auto log_a = log2_of(a), log_b = log2_of(b), log_dst = log2_of(dst);
  if (!log_a || !log_b || !log_dst) return std::nullopt;
  return std::pair{*log_dst - *log_a, *log_dst - *log_b};
}

}  // namespace

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
  if (!pair_fits(op, scale_a, scale_b, scale_dst, wide))
    return Refusal{sums && op != BinaryOp::kSub ? Why::kAborts : Why::kQuantization,
                   "the scale of the output", "is too small for that of the inputs"};
  return std::nullopt;
}

bool pair_fits(BinaryOp op, float a, float b, float dst, bool wide) {
  const PairScaling scaling = pair_scaling(op, a, b, dst, wide);
  const bool sums = is_sum(op) || op == BinaryOp::kSquaredDifference;
  return scaling.result.shift <= (sums ? 0 : 30) && scaling.a.shift <= 30;
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
