// Family of DEQUANTIZE: float16, bfloat16 or integers with one scale or one per channel to float32.
#include "ops/families/dequantize.hpp"

#include "ops/quantized/axis_scales.hpp"

namespace clgpu::ops {
namespace {

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView input = node.input(0);
  CLGPU_REFUSE_TYPE(input, "input", DType::kF16, DType::kBF16, DType::kI8, DType::kU8, DType::kI16);
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kF32);
  DequantizeAttrs attrs;
  attrs.half = is_float(input.dtype());
  CLGPU_REFUSE_IF(!attrs.half && !input.is_quantized(), Why::kQuantization, "input",
                  "has no scale");
  return Imported{share(attrs), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& dst = node.output(0);
  const std::int64_t elements = dst.shape.elements();
  kernel::Candidate candidate{"elementwise", {}, {}};
  kernel::Launch launch("dequantize/dequantize.cl", "dequantize_elementwise");
  launch.type("SRC_T", node.input(0).storage).type("DST_T", dst.storage);
  push_axis_scales(candidate, launch.src(0).dst(0).i32(elements), node.input(0));
  launch.range({uz(elements)}, {kElementwiseGroup});
  candidate.launches.push_back(launch);
  return {candidate};
}

const RowRules kRows{axis_scales_unit, kRowwise.need, kRowwise.attrs};

}  // namespace

extern const Family kDequantizeFamily;
const Family kDequantizeFamily = [] {
  Family family;
  family.name = "dequantize";
  family.attrs = ir::attrs_type<DequantizeAttrs>();
  family.builtins = {{6, "DEQUANTIZE", 1, 0, 1, -1}};
  family.most_axes = kMostAxes;
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRows;
  family.variants = {&kFusedDequantizeFamily};
  return family;
}();

const Family kFusedDequantizeFamily = [] {
  Family family;
  family.name = "dequantize";
  family.variant = "fused";
  family.attrs = ir::attrs_type<DequantizeAttrs>();
  family.most_axes = kMostAxes;
  family.infer = infer_same_as_input;
  family.is_view = true;
  family.allows_quantized = true;
  family.fuses = {&kDequantizeFamily};
  return family;
}();

bool is_half_dequantize(const ir::Node& node) {
  return node.kind == &kDequantizeFamily && static_cast<const DequantizeAttrs&>(*node.attrs).half;
}

bool is_dequantize_of_integers(const ir::Node& node) {
  return node.kind == &kDequantizeFamily && !static_cast<const DequantizeAttrs&>(*node.attrs).half;
}

ir::Node dequantize_of(int src, int dst) {
  ir::Node node;
  node.kind = &kDequantizeFamily;
  node.op = "DEQUANTIZE";
  node.inputs = {src};
  node.outputs = {dst};
  node.attrs = share(DequantizeAttrs{});
  return node;
}

}  // namespace clgpu::ops
