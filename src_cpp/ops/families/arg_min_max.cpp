// Family of ARG_MAX and ARG_MIN.
#include "ir/fields.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kArgMax = 56, kArgMin = 79;

struct ArgMinMaxAttrs : ir::Attrs {
  bool min = false;
  std::int64_t axis = 0;  ///< may be negative
  CLGPU_FIELDS(min, axis)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView src = node.input(0);
  CLGPU_REFUSE_TYPE(src, "input", DType::kF32, DType::kI32, DType::kBool, DType::kI8, DType::kU8);
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kI32, DType::kI64);
  // Stock kernels correct the type that the file gives the output, and readers of the output rely
  // on that.
  const auto* params = node.params<tfl::OutputTypeParams>();
  const auto said = params != nullptr ? tfl::dtype_of(params->output_type) : std::nullopt;
  CLGPU_REFUSE_IF((said == DType::kI32 || said == DType::kI64) &&
                      params->output_type != node.output(0).tflite_type(),
                  Why::kParameter, "the output type", "is not that of the output");
  const auto axis = node.input(1).ints();
  CLGPU_REFUSE_IF(!axis, Why::kRunTime, "the axis");
  CLGPU_REFUSE_IF(axis->size() != 1, Why::kParameter, "the axis", "is not one number");
  if (const auto checked = checked_axis((*axis)[0], src.rank()); !checked) return checked.refusal();
  ArgMinMaxAttrs attrs;
  attrs.min = node.builtin() == kArgMin;
  attrs.axis = (*axis)[0];
  return Imported{share(attrs), {}};
}

int axis_of(const NodeContext& node) {
  const std::int64_t axis = node.attrs<ArgMinMaxAttrs>().axis;
  const ir::Shape& src = node.input(0).shape;
  const auto index = normalize_axis(axis, src.rank());
  if (!index)
    throw ShapeError("axis " + std::to_string(axis) + " is out of range for " + src.str());
  return *index;
}

ir::Shapes infer(const NodeContext& node) {
  std::vector<int> dims = node.input(0).shape.dims();
  dims.erase(dims.begin() + axis_of(node));
  return {ir::Shape(dims)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const ir::Tensor& src = node.input(0);
  const int axis = axis_of(node);
  const int length = src.shape[axis];
  const std::int64_t inner = src.shape.elements(axis + 1, src.shape.rank());
  const std::int64_t outputs = src.shape.elements() / length;

  std::vector<kernel::Candidate> list;
  for (const Sharing& sharing : sharings(outputs, length, inner == 1, device)) {
    kernel::Launch launch("arg_min_max/arg_min_max.cl", "arg_min_max");
    launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
    launch.macro("MIN", node.attrs<ArgMinMaxAttrs>().min ? 1 : 0);
    launch.macro("WX", static_cast<std::int64_t>(sharing.outputs));
    launch.macro("WY", static_cast<std::int64_t>(sharing.items))
        .macro("Y_FAST", inner == 1 ? 1 : 0);
    launch.src(0).dst(0).i32(outputs).i32(length).i32(inner);
    launch.range({sharing.range(outputs)}, {sharing.group()});
    list.push_back(kernel::of_form(sharing.form, {sharing.name, {launch}, {}}));
  }
  return list;
}

double flops(const NodeContext& node) {
  return static_cast<double>(node.input(0).shape.elements());
}

}  // namespace

extern const Family kArgMinMaxFamily;
const Family kArgMinMaxFamily = [] {
  Family family;
  family.name = "arg_min_max";
  family.attrs = ir::attrs_type<ArgMinMaxAttrs>();
  family.builtins = {{kArgMax, "ARG_MAX", 2, 0, 1, -1}, {kArgMin, "ARG_MIN", 2, 0, 1, -1}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  family.indices.output = 0;
  family.indices.axis = 1;
  return family;
}();

}  // namespace clgpu::ops
