// Room of comparisons with broadcasting; the result is bool.
#include "ops/broadcast.hpp"
#include "ops/row_rules.hpp"

namespace clgpu::ops {
namespace {

/// Code of each comparison, in the order of the values of the macro OP in
/// kernels/compare/compare.cl.
constexpr int kCodes[] = {71, 72, 61, 62, 58, 63};

struct CompareAttrs : ir::Attrs {
  int op = 0;
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  for (int i = 0; i < 2; ++i) {
    CLGPU_REFUSE_TYPE(node.input(i), "input " + std::to_string(i), DType::kF32, DType::kI32,
                      DType::kI64, DType::kBool);
  }
  CLGPU_REFUSE_IF(node.input(0).dtype() != node.input(1).dtype(),
                  "the inputs have different types");
  CompareAttrs attrs;
  while (kCodes[attrs.op] != node.builtin()) ++attrs.op;
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
  launch.macro("OP", node.attrs<CompareAttrs>().op);
  launch.src(0).src(1).dst(0);
  walk.append_to(launch);
  launch.range({uz(walk.elements())}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kCompareFamily;
const Family kCompareFamily{{"compare", /*has_epilogue=*/false, /*is_view=*/false},
                            {{kCodes[0], "EQUAL"},
                             {kCodes[1], "NOT_EQUAL"},
                             {kCodes[2], "GREATER"},
                             {kCodes[3], "GREATER_EQUAL"},
                             {kCodes[4], "LESS"},
                             {kCodes[5], "LESS_EQUAL"}},
                            {},
                            /*core=*/false,
                            import,
                            infer,
                            candidates,
                            /*fold=*/nullptr,
                            /*allows_quantized=*/false,
                            &kRowwise};

}  // namespace clgpu::ops
