// Family of MediaPipe's MaxPoolingWithArgmax2D: maxima and their positions within their windows.
#include "ops/shared/custom_pool.hpp"

namespace clgpu::ops {
namespace {

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  CLGPU_REFUSE_TYPE(node.output(1), "the output of indices", DType::kF32);
  CLGPU_REFUSE_RANK(node.input(0), "input", 4, 4);
  auto pool = read_custom_pool(node);
  if (!pool) return pool.refusal();
  return Imported{share(pool->attrs), pool->epilogue};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<CustomPoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const int h = window(attrs.padding, src[1], attrs.filter_h, attrs.stride_h, 1).out;
  const int w = window(attrs.padding, src[2], attrs.filter_w, attrs.stride_w, 1).out;
  if (h < 1 || w < 1) throw ShapeError("the filter is larger than the input " + src.str());
  const ir::Shape dst{src[0], h, w, src[3]};
  return {dst, dst};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<CustomPoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const ir::Shape& dst = node.output(0).shape;
  kernel::Launch launch("max_pool_argmax/max_pool_argmax.cl", "max_pool_argmax_naive");
  launch.type("SRC_T", node.input(0).storage).type("DST_T", node.output(0).storage);
  launch.type("INDEX_T", node.output(1).storage);
  set_epilogue(launch, node.epilogue());
  launch.src(0).dst(0).dst(1);
  launch.i32(dst[0]).i32(src[1]).i32(src[2]).i32(dst[1]).i32(dst[2]).i32(dst[3]);
  launch.i32(attrs.filter_h).i32(attrs.filter_w).i32(attrs.stride_h).i32(attrs.stride_w);
  launch.i32(window(attrs.padding, src[1], attrs.filter_h, attrs.stride_h, 1).before);
  launch.i32(window(attrs.padding, src[2], attrs.filter_w, attrs.stride_w, 1).before);
  launch.range({uz(dst.elements())}, {kElementwiseGroup});
  return {kernel::of_form(kernel::Form::kReference, {"naive", {launch}, {}})};
}

double flops(const NodeContext& node) {
  const auto& attrs = node.attrs<CustomPoolAttrs>();
  return static_cast<double>(node.output(0).shape.elements() * attrs.filter_h * attrs.filter_w);
}

}  // namespace

extern const Family kMaxPoolArgmaxFamily;
// No epilogue from other nodes: an activation must not apply to the indices.
const Family kMaxPoolArgmaxFamily = [] {
  Family family;
  family.name = "max_pool_argmax";
  family.attrs = ir::attrs_type<CustomPoolAttrs>();
  family.customs = {{kTfLiteBuiltinCustom, "MaxPoolingWithArgmax2D", 1, 0, 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.work_kind = WorkKind::kWindow;
  return family;
}();

}  // namespace clgpu::ops
