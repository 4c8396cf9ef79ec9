// Family of LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT.
#include "ops/families/logical.hpp"

#include "ir/fields.hpp"
#include "ops/shared/broadcast.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

/// Code of each operation, in the order of the values of the macro OP in
/// kernels/logical/logical.cl.
constexpr int kCodes[] = {86, 84, 87};
constexpr int kNot = 2;

struct LogicalAttrs : ir::Attrs {
  int op = 0;
  CLGPU_FIELDS(op)
};

/// The second operand; LOGICAL_NOT has none and reads its first one twice.
int second(const NodeContext& node) { return node.input_count() - 1; }

OrRefusal<Imported> import(const tfl::NodeView& node) {
  for (int i = 0; i < node.input_count(); ++i) {
    CLGPU_REFUSE_TYPE(node.input(i), "input " + std::to_string(i), DType::kBool);
  }
  LogicalAttrs attrs;
  while (kCodes[attrs.op] != node.builtin()) ++attrs.op;
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  return {broadcast(node.input(0).shape, node.input(second(node)).shape)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const int b = second(node);
  const BroadcastWalk walk =
      broadcast_walk(node.output(0).shape, {node.input(0).shape, node.input(b).shape});
  kernel::Launch launch("logical/logical.cl", "logical_elementwise");
  launch.macro("OP", node.attrs<LogicalAttrs>().op);
  launch.src(0).src(b).dst(0);
  walk.append_to(launch);
  launch.range({uz(walk.elements())}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kLogicalFamily;
const Family kLogicalFamily = [] {
  Family family;
  family.name = "logical";
  family.attrs = ir::attrs_type<LogicalAttrs>();
  family.builtins = {
      {kCodes[0], "LOGICAL_AND", 2}, {kCodes[1], "LOGICAL_OR", 2}, {kCodes[kNot], "LOGICAL_NOT"}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.rows = &kRowwise;
  return family;
}();

ir::Node negation_of(int condition, int result) {
  LogicalAttrs attrs;
  attrs.op = kNot;
  ir::Node node;
  node.kind = &kLogicalFamily;
  node.op = "LOGICAL_NOT";
  node.inputs = {condition};
  node.outputs = {result};
  node.attrs = std::make_shared<const LogicalAttrs>(attrs);
  return node;
}

}  // namespace clgpu::ops
