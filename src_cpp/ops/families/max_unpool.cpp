// Family of MediaPipe's MaxUnpooling2D: puts values back where MaxPoolingWithArgmax2D found them.
#include <algorithm>

#include "ops/shared/custom_pool.hpp"

namespace clgpu::ops {
namespace {

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  CLGPU_REFUSE_TYPE(node.input(1), "the input of indices", DType::kF32);
  CLGPU_REFUSE_RANK(node.input(0), "input", 4, 4);
  CLGPU_REFUSE_RANK(node.input(1), "the input of indices", 4, 4);
  // MediaPipe ignores padding and activation of this operation.
  auto pool = read_custom_pool(node);
  if (!pool) return pool.refusal();
  return Imported{share(pool->attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<CustomPoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  if (src != node.input(1).shape) {
    throw ShapeError("values " + src.str() + " and indices " + node.input(1).shape.str() +
                     " differ in shape");
  }
  return {ir::Shape{src[0], src[1] * attrs.filter_h, src[2] * attrs.filter_w, src[3]}};
}

/// Elements by which windows extend beyond the top or left edge; positive only if strides are
/// larger than the filter.
int overhang(int in, int filter, int stride) {
  return std::max(0, ((in - 1) * stride + filter - in * filter) / 2);
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<CustomPoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const ir::Shape& dst = node.output(0).shape;
  kernel::Launch launch("max_unpool/max_unpool.cl", "max_unpool_gather");
  launch.type("SRC_T", node.input(0).storage).type("INDEX_T", node.input(1).storage);
  launch.type("DST_T", node.output(0).storage);
  launch.src(0).src(1).dst(0);
  launch.i32(dst[0]).i32(src[1]).i32(src[2]).i32(dst[1]).i32(dst[2]).i32(dst[3]);
  launch.i32(attrs.filter_h).i32(attrs.filter_w).i32(attrs.stride_h).i32(attrs.stride_w);
  launch.i32(overhang(src[1], attrs.filter_h, attrs.stride_h));
  launch.i32(overhang(src[2], attrs.filter_w, attrs.stride_w));
  launch.range({uz(dst.elements())}, {kElementwiseGroup});
  return {{"gather", {launch}, {}}};
}

}  // namespace

extern const Family kMaxUnpoolFamily;
const Family kMaxUnpoolFamily = [] {
  Family family;
  family.name = "max_unpool";
  family.attrs = ir::attrs_type<CustomPoolAttrs>();
  family.customs = {{kTfLiteBuiltinCustom, "MaxUnpooling2D", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  return family;
}();

}  // namespace clgpu::ops
