// Family of ONE_HOT: a new axis that is `on` at the index and `off` elsewhere.
#include "ops/families/one_hot.hpp"

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kOneHot = 85;

struct OneHotAttrs : ir::Attrs {
  int axis = 0;   ///< of the output
  int depth = 0;  ///< its size
  CLGPU_FIELDS(axis, depth)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView indices = node.input(0), on = node.input(2), off = node.input(3);
  CLGPU_REFUSE_TYPE(indices, "the tensor of indices", DType::kI32, DType::kI64);
  const auto depth = node.input(1).ints();
  CLGPU_REFUSE_IF(!depth || depth->size() != 1, Why::kRunTime, "the depth");
  if (depth->front() < 0) return wrong_value("the depth", depth->front(), "0 and more");
  CLGPU_REFUSE_IF(on.tflite_type() != off.tflite_type(), Why::kOperands, "the values on and off",
                  "differ in type");
  CLGPU_REFUSE_IF((on.rank() > 0 && on.elements() != 1) || (off.rank() > 0 && off.elements() != 1),
                  Why::kParameter, "the value on or off", "is not a scalar");
  for (const int value : {2, 3}) {
    if (auto refusal = check_moved(node, value)) return *refusal;
  }
  const auto* params = node.params<tfl::OneHotParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  if (params->axis < -1 || params->axis > indices.rank())
    return wrong_value("the axis", params->axis, "-1 to " + std::to_string(indices.rank()));
  OneHotAttrs attrs;
  attrs.axis = params->axis == -1 ? indices.rank() : params->axis;
  attrs.depth = static_cast<int>(depth->front());
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<OneHotAttrs>();
  std::vector<int> dims = node.input(0).shape.dims();
  dims.insert(dims.begin() + attrs.axis, attrs.depth);
  return {ir::Shape(dims)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<OneHotAttrs>();
  const ir::Tensor& dst = node.output(0);
  const DType on = node.input(2).storage, off = node.input(3).storage;
  const std::int64_t n = dst.shape.elements();
  // Copied as bits if all three have the same storage.
  const bool alike = on == dst.storage && off == dst.storage;
  const MoveUnit unit = move_unit(dst.storage, dst.storage, 1);
  const char* on_type = alike ? unit.src_type : cl_name(on);
  const char* off_type = alike ? unit.src_type : cl_name(off);
  const char* dst_type = alike ? unit.dst_type : cl_name(dst.storage);

  kernel::Launch launch("one_hot/one_hot.cl", "one_hot_compare");
  launch.type("INDEX_T", node.input(0).storage);
  launch.macro("ON_T", on_type).macro("OFF_T", off_type).macro("DST_T", dst_type);
  launch.src(0).src(2).src(3).dst(0).i32(n).i32(attrs.depth);
  launch.i32(dst.shape.elements(attrs.axis + 1, dst.shape.rank()));
  launch.range({uz(n)}, {kElementwiseGroup});
  return {{"compare", {launch}, {}}};
}

}  // namespace

extern const Family kOneHotFamily;
const Family kOneHotFamily = [] {
  Family family;
  family.name = "one_hot";
  family.attrs = ir::attrs_type<OneHotAttrs>();
  family.builtins = {{kOneHot, "ONE_HOT", 4, 0, 1, 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

std::optional<HotElements> hot_elements(const ir::Graph& graph, const ir::Node& node) {
  if (node.kind != &kOneHotFamily) return std::nullopt;
  const int indices = node.inputs[0];
  const auto& attrs = static_cast<const OneHotAttrs&>(*node.attrs);
  if (attrs.axis != graph.tensor(indices).shape.rank()) return std::nullopt;
  return HotElements{indices, node.inputs[2], node.inputs[3]};
}

}  // namespace clgpu::ops
