// Family of QUANTIZE: from float, one scale or one per channel, and from integers of another scale,
// zero point or type.
#include "ops/families/quantize.hpp"

#include "ops/quantized/axis_scales.hpp"
#include "ops/quantized/quantized.hpp"

namespace clgpu::ops {
namespace {

Multiplier rescaling(float src, float dst) {
  return quantize_multiplier(static_cast<double>(src) / static_cast<double>(dst));
}

/// The pairs of types that the reference kernels can rescale.
std::optional<Refusal> check_rescaling(const tfl::TensorView& src, const tfl::TensorView& dst) {
  using T = DType;
  std::optional<Refusal> refusal;
  if (src.dtype() == T::kI32) {
    refusal = check_type(dst, "output", {T::kI8, T::kI16});
  } else if (src.dtype() == T::kI16) {
    refusal = check_type(dst, "output", {T::kI8, T::kI16, T::kI32});
  } else {
    refusal = check_type(dst, "output", {T::kI8, T::kU8, T::kI16});
  }
  if (!refusal) refusal = check_per_tensor(src, "the input");
  if (!refusal) refusal = check_per_tensor(dst, "the output");
  // The reference kernels take those of int16 in other pairs only.
  for (const tfl::TensorView* tensor : {&src, &dst}) {
    const bool shifted = src.dtype() == dst.dtype() && src.dtype() == T::kI16;
    if (!refusal && shifted && tensor->zero_point() != 0)
      refusal = wrong_scale(*tensor, "int16 that becomes int16", "any", 0);
  }
  if (!refusal && rescaling(src.scale(), dst.scale()).shift > 30)
    refusal = Refusal{Why::kQuantization, "the scale of the output",
                      "is too small for that of the input"};
  return refusal;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView input = node.input(0), output = node.output(0);
  CLGPU_REFUSE_TYPE(input, "input", DType::kF32, DType::kI8, DType::kU8, DType::kI16, DType::kI32);
  if (input.dtype() != DType::kF32) {
    if (auto refusal = check_rescaling(input, output)) return *refusal;
  } else {
    CLGPU_REFUSE_TYPE(output, "output", DType::kI8, DType::kU8, DType::kI16);
    CLGPU_REFUSE_IF(!output.is_quantized(), Why::kQuantization, "output", "has no scale");
  }
  return Imported{std::make_shared<const ir::Attrs>(), {}};
}

kernel::Candidate rescale(const NodeContext& node) {
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  const std::int64_t elements = dst.shape.elements();
  const ResultLayout layout = result_layout(node);
  int width = 1;
  for (const int w : {4, 16}) {
    if (layout.aligned(w) && (!layout.sliced || layout.channels % w == 0)) width = w;
  }
  const Multiplier m = rescaling(src.scale(), dst.scale());
  const bool full = dst.dtype == DType::kI32;
  const IntRange range = full ? IntRange{INT32_MIN, INT32_MAX} : range_of(dst.dtype);
  kernel::Launch launch("quantize/rescale.cl", "quantize_rescale");
  launch.type("SRC_T", src.storage).type("DST_T", dst.storage).macro("WIDTH", width);
  push_result(launch.src(0), layout).i32(elements);
  launch.i32(src.zero_point()).i32(m.value).i32(m.shift);
  launch.i32(dst.zero_point()).i32(range.low).i32(range.high);
  launch.range({uz(ceil_div(elements, width))}, {kElementwiseGroup});
  kernel::Candidate candidate{"rescale", {launch}, {}};
  if (src.storage_bytes() == dst.storage_bytes()) candidate.in_place = {0};
  return candidate;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& dst = node.output(0);
  if (!is_float(node.input(0).dtype)) return {rescale(node)};
  const std::int64_t elements = dst.shape.elements();
  kernel::Candidate candidate{"elementwise", {}, {}};
  kernel::Launch launch("quantize/quantize.cl", "quantize_elementwise");
  launch.type("SRC_T", node.input(0).storage).type("DST_T", dst.storage);
  push_axis_scales(candidate, push_result(launch.src(0), result_layout(node)).i32(elements), dst);
  launch.range({uz(elements)}, {kElementwiseGroup});
  candidate.launches.push_back(launch);
  return {candidate};
}

const RowRules kRows{axis_scales_unit, kRowwise.need, kRowwise.attrs};

}  // namespace

extern const Family kQuantizeFamily;
const Family kQuantizeFamily = [] {
  Family family;
  family.name = "quantize";
  family.writes_slices = true;
  family.builtins = {{114, "QUANTIZE", 1, 0, 1, -1}};
  family.most_axes = kMostAxes;
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.int16_zero_points = true;
  family.rows = &kRows;
  family.variants = {&kFusedQuantizeFamily};
  return family;
}();

const Family kFusedQuantizeFamily = [] {
  Family family;
  family.name = "quantize";
  family.variant = "fused";
  family.most_axes = kMostAxes;
  family.infer = infer_same_as_input;
  family.is_view = true;
  family.allows_quantized = true;
  family.fuses = {&kQuantizeFamily};
  return family;
}();

bool is_quantize_of_floats(const ir::Graph& graph, const ir::Node& node) {
  return node.kind == &kQuantizeFamily && is_float(graph.tensor(node.inputs[0]).dtype);
}

ir::Node quantize_of(int src, int dst) {
  ir::Node node;
  node.kind = &kQuantizeFamily;
  node.op = "QUANTIZE";
  node.inputs = {src};
  node.outputs = {dst};
  node.attrs = std::make_shared<const ir::Attrs>();
  return node;
}

}  // namespace clgpu::ops
