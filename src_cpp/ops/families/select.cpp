// Family of SELECT and SELECT_V2: dst = condition ? x : y.
#include "ir/fields.hpp"
#include "ops/shared/broadcast.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kSelect = 64, kSelectV2 = 123;

struct SelectAttrs : ir::Attrs {
  bool broadcasts = false;  ///< SELECT_V2: all three inputs broadcast as in numpy
  CLGPU_FIELDS(broadcasts)
};

/// The shape with which the condition is broadcast. SELECT allows a vector that selects whole
/// slices of the first axis of x and y.
ir::Shape condition_shape(const NodeContext& node) {
  const ir::Shape& condition = node.input(0).shape;
  const ir::Shape& x = node.input(1).shape;
  if (node.attrs<SelectAttrs>().broadcasts || condition == x || condition.elements() == 1) {
    return condition;
  }
  std::vector<int> dims(uz(x.rank()), 1);
  if (condition.rank() != 1 || x.rank() == 0 || condition[0] != x[0]) {
    throw ShapeError("a condition of shape " + condition.str() + " does not select from " +
                     x.str());
  }
  dims[0] = condition[0];
  return ir::Shape(dims);
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "the condition", DType::kBool);
  for (int i = 1; i < 3; ++i) {
    CLGPU_REFUSE_TYPE(node.input(i), "input " + std::to_string(i), DType::kF32, DType::kF16,
                      DType::kI32, DType::kI64, DType::kBool, DType::kI16, DType::kI8, DType::kU8,
                      DType::kBF16, DType::kU16, DType::kU32);
  }
  CLGPU_REFUSE_IF(node.input(1).dtype() != node.input(2).dtype(), Why::kOperands, "the inputs",
                  "have different types");
  SelectAttrs attrs;
  attrs.broadcasts = node.builtin() == kSelectV2;
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& x = node.input(1).shape;
  const ir::Shape& y = node.input(2).shape;
  const ir::Shape& present = node.output(0).shape;
  // As in the stock kernels: if every shape has one element, the output keeps its rank.
  if (node.input(0).shape.elements() == 1 && x.elements() == 1 && y.elements() == 1 &&
      present.elements() == 1)
    return {present};
  if (!node.attrs<SelectAttrs>().broadcasts) {
    if (x != y) throw ShapeError("shapes " + x.str() + " and " + y.str() + " differ");
    condition_shape(node);
    return {x};
  }
  return {broadcast(node.input(0).shape, broadcast(x, y))};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& x = node.input(1);
  const ir::Tensor& y = node.input(2);
  const ir::Tensor& dst = node.output(0);
  ir::Shape condition = condition_shape(node);
  if (condition.elements() == 1) condition = {};  // its rank may exceed that of the output
  const BroadcastWalk walk = broadcast_walk(dst.shape, {condition, x.shape, y.shape});
  kernel::Launch launch("select/select.cl", "select_elementwise");
  launch.type("X_T", x.storage).type("Y_T", y.storage).type("DST_T", dst.storage);
  launch.src(0).src(1).src(2).dst(0);
  walk.append_to(launch);
  launch.range({uz(walk.elements())}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kSelectFamily;
const Family kSelectFamily = [] {
  Family family;
  family.name = "select";
  family.attrs = ir::attrs_type<SelectAttrs>();
  family.builtins = {{kSelect, "SELECT", 3, 0, 1, 1}, {kSelectV2, "SELECT_V2", 3, 0, 1, 1}};
  family.most_axes = kMostAxes;
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRowwise;
  return family;
}();

}  // namespace clgpu::ops
