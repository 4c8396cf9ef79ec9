// Room of QUANTIZE from float, one scale per tensor.
#include "ops/common.hpp"

namespace clgpu::ops {
namespace {

struct QuantizeAttrs : ir::Attrs {
  float scale = 1.0F;
  int zero_point = 0;
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_IF(node.input(0).dtype() != DType::kF32,
                  "the input is quantized already: rescaling integers is left to the CPU");
  const tfl::TensorView output = node.output(0);
  CLGPU_REFUSE_TYPE(output, "output", DType::kI8, DType::kU8, DType::kI16);
  const auto* affine =
      static_cast<const TfLiteAffineQuantization*>(output.raw().quantization.params);
  CLGPU_REFUSE_IF(affine != nullptr && affine->scale != nullptr && affine->scale->size > 1,
                  "the output has one scale per channel");
  CLGPU_REFUSE_IF(!(output.scale() > 0.0F), "the output has no scale");
  QuantizeAttrs attrs;
  attrs.scale = output.scale();
  attrs.zero_point = output.zero_point();
  return Imported{share(attrs), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<QuantizeAttrs>();
  const ir::Tensor& dst = node.output(0);
  const std::int64_t elements = dst.shape.elements();
  kernel::Launch launch("quantize/quantize.cl", "quantize_elementwise");
  launch.type("SRC_T", node.input(0).storage).type("DST_T", dst.storage);
  launch.src(0).dst(0).i32(elements).f32(attrs.scale).i32(attrs.zero_point);
  launch.range({uz(elements)}, {kElementwiseGroup});
  return {{"elementwise", {launch}, {}}};
}

}  // namespace

extern const Family kQuantizeFamily;
const Family kQuantizeFamily{{"quantize", /*has_epilogue=*/false, /*is_view=*/false},
                             {{114, "QUANTIZE"}},
                             {},
                             /*core=*/false,
                             import,
                             infer_same_as_input,
                             candidates,
                             /*fold=*/nullptr,
                             /*allows_quantized=*/true};

}  // namespace clgpu::ops
