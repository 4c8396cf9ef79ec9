// Family of CAST between element types.
#include "ops/families/cast.hpp"

#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

OrRefusal<Imported> import(const tfl::NodeView& node) {
  // Uses the tensors' types; the parameters only repeat them.
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kF32, DType::kF16, DType::kI32, DType::kI64,
                    DType::kBool, DType::kI16, DType::kI8, DType::kU8, DType::kBF16, DType::kU16,
                    DType::kU32);
  if (node.input(0).dtype() == DType::kC64)
    CLGPU_REFUSE_TYPE(node.output(0), "output of a complex input", DType::kF32);
  return Imported{share(ir::Attrs{}), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const std::int64_t elements = dst.shape.elements();
  if (src.dtype == DType::kC64) {
    // The real parts, every second float.
    const StridedCopy copy{{static_cast<int>(elements)}, {2}};
    return {{"real_parts", {strided_copy(copy, DType::kF32, dst.storage)}, {}}};
  }
  kernel::Launch launch("cast/cast.cl", "cast_elementwise");
  launch.type("SRC_T", src.storage).type("DST_T", dst.storage);
  launch.macro("FROM_FLOAT", is_float(src.storage) ? 1 : 0);
  launch.macro("TO_FLOAT", is_float(dst.storage) ? 1 : 0);
  launch.macro("TO_BOOL", dst.dtype == DType::kBool ? 1 : 0);
  launch.src(0).dst(0).i32(elements);
  launch.range({uz(elements)}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kCastFamily;
const Family kCastFamily = [] {
  Family family;
  family.name = "cast";
  family.builtins = {{53, "CAST", 1, 0, 1, -1}};
  family.most_axes = kMostAxes;
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRowwise;
  return family;
}();

bool is_half_cast(const ir::Graph& graph, const ir::Node& node) {
  if (node.kind != &kCastFamily || graph.tensor(node.outputs[0]).dtype != DType::kF32) return false;
  const DType from = graph.tensor(node.inputs[0]).dtype;
  return from == DType::kF16 || from == DType::kBF16;
}

}  // namespace clgpu::ops
