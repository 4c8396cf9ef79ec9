// Family of MaxUnpooling2D: puts values back where a pooling has found them. The operation of
// MediaPipe has float indices, places within windows; that of TensorFlow Lite and LiteRT has int32
// indices, places within an image.
#include <algorithm>

#include "ops/shared/custom_pool.hpp"

namespace clgpu::ops {
namespace {

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  CLGPU_REFUSE_TYPE(node.input(1), "the input of indices", DType::kF32, DType::kI32);
  CLGPU_REFUSE_RANK(node.input(0), "input", 4, 4);
  CLGPU_REFUSE_RANK(node.input(1), "the input of indices", 4, 4);
  // All of them ignore the activation, and MediaPipe the padding.
  auto pool = read_custom_pool(node);
  if (!pool) return pool.refusal();
  return Imported{share(pool->attrs), {}};
}

bool has_places_of_images(const NodeContext& node) { return node.input(1).dtype == DType::kI32; }

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<CustomPoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  if (src != node.input(1).shape) {
    throw ShapeError("values " + src.str() + " and indices " + node.input(1).shape.str() +
                     " differ in shape");
  }
  if (!has_places_of_images(node))
    return {ir::Shape{src[0], src[1] * attrs.filter_h, src[2] * attrs.filter_w, src[3]}};
  const bool same = attrs.padding == 1;
  const auto side = [&](std::int64_t in, int filter, int stride) {
    const std::int64_t out = same ? in * stride : (in - 1) * stride + filter;
    if (out > INT32_MAX) throw ShapeError("strides make more than 2147483647 rows or columns");
    return static_cast<int>(out);
  };
  return {ir::Shape{src[0], side(src[1], attrs.filter_h, attrs.stride_h),
                    side(src[2], attrs.filter_w, attrs.stride_w), src[3]}};
}

/// Elements by which windows extend beyond the top or left edge; positive only if strides are
/// larger than the filter.
int overhang(int in, int filter, int stride) {
  return std::max(0, ((in - 1) * stride + filter - in * filter) / 2);
}

/// Of the values for a place the last one counts, so the greatest position among them is kept.
kernel::Candidate scatter(const NodeContext& node) {
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  const std::int64_t count = src.shape.elements(), places = dst.shape.elements();
  const auto launch_of = [&](const char* entry, std::int64_t items) {
    kernel::Launch launch("max_unpool/scatter.cl", entry);
    launch.type("SRC_T", src.storage).type("DST_T", dst.storage);
    launch.range({uz(items)}, {kElementwiseGroup});
    return launch;
  };
  auto clear = launch_of("max_unpool_clear", places);
  clear.scratch_out(0).i32(places);
  auto mark = launch_of("max_unpool_mark", count);
  mark.src(1).scratch_inout(0).i32(count).i32(count / src.shape[0]).i32(places / src.shape[0]);
  auto take = launch_of("max_unpool_take", places);
  take.src(0).scratch_in(0).dst(0).i32(places);
  return {"scatter", {clear, mark, take}, {{places * 4}}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  if (has_places_of_images(node)) return {scatter(node)};
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
  family.customs = {{kTfLiteBuiltinCustom, "MaxUnpooling2D", 2},
                    {kTfLiteBuiltinCustom, "LiteRtMaxUnpooling2D", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  return family;
}();

}  // namespace clgpu::ops
