// Family of comparisons with broadcasting; the result is bool.
#include "ir/fields.hpp"
#include "ops/families/quantized_binary.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

/// Code of each comparison, in the order of the values of the macro OP in
/// kernels/compare/compare.cl.
constexpr int kCodes[] = {71, 72, 61, 62, 58, 63};

enum : int { kEqual, kNotEqual };  // positions in kCodes

struct CompareAttrs : ir::Attrs {
  int op = 0;
  bool scaled = false;  ///< quantised numbers are scaled to one scale
  CLGPU_FIELDS(op, scaled)
};

/// int16 is compared by stored values, except for (in)equality, as in the reference kernels. These
/// have no inequality of int16 without a scale.
bool is_scaled(const tfl::NodeView& node, int op) {
  const tfl::TensorView a = node.input(0);
  if (size_of(a.dtype()) == 1) return a.dtype() != DType::kBool;
  if (a.dtype() != DType::kI16) return false;
  const bool any_scale = a.is_quantized() || node.input(1).is_quantized();
  return op == kEqual ? any_scale : op == kNotEqual;
}

/// The reference kernels do not support scales of 1 or more.
std::optional<Refusal> check_scale(const tfl::TensorView& tensor, const std::string& what) {
  if (auto refusal = check_per_tensor(tensor, what)) return refusal;
  if (quantize_multiplier(static_cast<double>(tensor.scale())).shift <= 0) return std::nullopt;
  // The kernels of older runtimes abort on all of them, those of newer ones on 1 alone.
  return Refusal{tensor.scale() == 1.0F ? Why::kAborts : Why::kQuantization,
                 what,
                 {},
                 "the scale " + std::to_string(tensor.scale()),
                 {"below 1"}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  for (int i = 0; i < 2; ++i) {
    CLGPU_REFUSE_TYPE(node.input(i), "input " + std::to_string(i), DType::kF32, DType::kF16,
                      DType::kI32, DType::kI64, DType::kBool, DType::kI8, DType::kU8, DType::kI16,
                      DType::kBF16);
  }
  CLGPU_REFUSE_IF(node.input(0).dtype() != node.input(1).dtype(), Why::kOperands, "the inputs",
                  "have different types");
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kBool);
  CompareAttrs attrs;
  while (kCodes[attrs.op] != node.builtin()) ++attrs.op;
  attrs.scaled = is_scaled(node, attrs.op);
  for (int i = 0; attrs.scaled && i < 2; ++i) {
    if (auto refusal = check_scale(node.input(i), "input " + std::to_string(i))) return *refusal;
  }
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  return {broadcast(node.input(0).shape, node.input(1).shape)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& a = node.input(0);
  const ir::Tensor& b = node.input(1);
  const BroadcastWalk walk = broadcast_walk(node.output(0).shape, {a.shape, b.shape});
  kernel::Launch launch("compare/compare.cl", "compare_elementwise");
  launch.type("A_T", a.storage).type("B_T", b.storage);
  const auto& attrs = node.attrs<CompareAttrs>();
  launch.macro("OP", attrs.op).macro("SCALED", attrs.scaled ? 1 : 0);
  launch.src(0).src(1).dst(0);
  if (attrs.scaled) {
    PairScaling scaling;
    scaling.left = 8;
    scaling.a_zero = a.zero_point();
    scaling.a = quantize_multiplier(static_cast<double>(a.scale()));
    scaling.b_zero = b.zero_point();
    scaling.b = quantize_multiplier(static_cast<double>(b.scale()));
    push_pair(launch, scaling);
  }
  walk.append_to(launch);
  launch.range({uz(walk.elements())}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kCompareFamily;
const Family kCompareFamily = [] {
  Family family;
  family.name = "compare";
  family.attrs = ir::attrs_type<CompareAttrs>();
  family.builtins = {{kCodes[0], "EQUAL", 2, 0, 1, -1},   {kCodes[1], "NOT_EQUAL", 2, 0, 1, -1},
                     {kCodes[2], "GREATER", 2, 0, 1, -1}, {kCodes[3], "GREATER_EQUAL", 2, 0, 1, -1},
                     {kCodes[4], "LESS", 2, 0, 1, -1},    {kCodes[5], "LESS_EQUAL", 2, 0, 1, -1}};
  family.most_axes = kMostAxes;
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRowwise;
  return family;
}();

}  // namespace clgpu::ops
