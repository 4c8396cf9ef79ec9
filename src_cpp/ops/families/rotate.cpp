// Family of rotations (RoPE); the pass fuse_rotation makes the nodes from the slices, products and
// sums that converters write.
#include "ops/families/rotate.hpp"

#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"

namespace clgpu::ops {

extern const Family kRotateFamily;

namespace {

constexpr int kX = 0, kCosine = 1, kSine = 2;  // inputs

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& x = node.input(kX).shape;
  const ir::Shape &cosine = node.input(kCosine).shape, &sine = node.input(kSine).shape;
  ir::Shape to = x;
  if (x.rank() > 0) to[x.rank() - 1] = cosine.back(0);
  const bool fits = x.rank() > 0 && cosine == sine && x.back(0) % 2 == 0 &&
                    (cosine.back(0) == x.back(0) || cosine.back(0) == x.back(0) / 2) &&
                    cosine.rank() <= x.rank() && broadcast(cosine, to) == to;
  if (!fits) {
    throw ShapeError("x " + x.str() + " does not fit cosines " + cosine.str() + " and sines " +
                     sine.str());
  }
  return {x};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& x = node.input(kX);
  const ir::Tensor& cosine = node.input(kCosine);
  const int half = x.shape.back(0) / 2;
  ir::Shape to = x.shape;
  to[to.rank() - 1] = cosine.shape.back(0);
  std::vector<int> strides = broadcast_strides(cosine.shape, to);
  strides.insert(strides.begin(), uz(kMaxRank - x.shape.rank()), 0);
  const std::array<int, 6> dims = six(x.shape.dims(), 1);
  const std::int64_t pairs = x.shape.elements() / 2;
  kernel::Launch launch("rotate/rotate.cl", "rotate_pairs");
  launch.macro("FULL", cosine.shape.back(0) == x.shape.back(0) ? 1 : 0);
  launch.type("SRC_T", x.storage).type("DST_T", node.output(0).storage);
  launch.type("COS_T", cosine.storage).type("SIN_T", node.input(kSine).storage);
  launch.src(kX).src(kCosine).src(kSine).dst(0).i32(pairs).i32(half);
  for (int axis = 1; axis < kMaxRank - 1; ++axis) launch.i32(dims[uz(axis)]);
  for (int axis = 0; axis < kMaxRank - 1; ++axis) launch.i32(strides[uz(axis)]);
  launch.range({uz(pairs)}, {kElementwiseGroup});
  kernel::Candidate candidate{"pairs", {launch}, {}};
  // A work-item reads both numbers of a pair before it writes them.
  if (x.storage == node.output(0).storage) candidate.in_place = {kX};
  return {candidate};
}

double flops(const NodeContext& node) {
  return 3.0 * static_cast<double>(node.output(0).shape.elements());
}

}  // namespace

const Family kRotateFamily = [] {
  Family family;
  family.name = "rotate";
  family.bundled = true;
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  family.stock_passes = 4;
  return family;
}();

ir::Node rotation(const ir::Node& last, int x, int cosine, int sine) {
  ir::Node node = last;
  node.kind = &kRotateFamily;
  node.inputs = {x, cosine, sine};
  node.attrs = nullptr;
  return node;
}

}  // namespace clgpu::ops
