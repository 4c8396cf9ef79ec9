// Family of rotations (RoPE); the pass fuse_rotation makes the nodes from the slices, products and
// sums that converters write.
#include "ops/families/rotate.hpp"

#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"

namespace clgpu::ops {

extern const Family kDynamicUpdateSliceFamily;
extern const Family kRotateFamily;
extern const Family kRotatedUpdateFamily;

namespace {

constexpr int kX = 0, kCosine = 1, kSine = 2;                             // inputs
constexpr int kOld = 0, kPart = 1, kStart = 2, kCosines = 3, kSines = 4;  // of an update

void check_tables(const ir::Shape& x, const ir::Shape& cosine, const ir::Shape& sine) {
  ir::Shape to = x;
  if (x.rank() > 0) to[x.rank() - 1] = cosine.back(0);
  const bool fits = x.rank() > 0 && cosine == sine && x.back(0) % 2 == 0 &&
                    (cosine.back(0) == x.back(0) || cosine.back(0) == x.back(0) / 2) &&
                    cosine.rank() <= x.rank() && broadcast(cosine, to) == to;
  if (!fits) {
    throw ShapeError("x " + x.str() + " does not fit cosines " + cosine.str() + " and sines " +
                     sine.str());
  }
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& x = node.input(kX).shape;
  check_tables(x, node.input(kCosine).shape, node.input(kSine).shape);
  return {x};
}

/// Of a table along the axes of x, of which there are kMaxRank.
std::vector<int> table_strides(const ir::Shape& x, const ir::Shape& table) {
  ir::Shape to = x;
  to[to.rank() - 1] = table.back(0);
  std::vector<int> strides = broadcast_strides(table, to);
  strides.insert(strides.begin(), uz(kMaxRank - x.rank()), 0);
  return strides;
}

/// Pairs of a work-item: several where there are many, and where they are neighbours in the tables.
int width_of(std::int64_t pairs, int half, const std::vector<int>& strides) {
  constexpr int kWidth = 4;
  constexpr std::int64_t kManyPairs = 1 << 16;  // with fewer, most of a GPU would be idle
  bool aligned = half % kWidth == 0;
  for (std::size_t axis = 0; axis + 1 < strides.size(); ++axis)
    aligned = aligned && strides[axis] % kWidth == 0;
  return aligned && pairs >= kManyPairs ? kWidth : 1;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& x = node.input(kX);
  const ir::Tensor& cosine = node.input(kCosine);
  const int half = x.shape.back(0) / 2;
  const std::vector<int> strides = table_strides(x.shape, cosine.shape);
  const std::array<int, 6> dims = six(x.shape.dims(), 1);
  const std::int64_t pairs = x.shape.elements() / 2;
  kernel::Launch launch("rotate/rotate.cl", "rotate_pairs");
  const int width = width_of(pairs, half, strides);
  launch.macro("FULL", cosine.shape.back(0) == x.shape.back(0) ? 1 : 0)
      .macro("VW", width)
      .type("SUM_T", DType::kF32);
  launch.type("SRC_T", x.storage).type("DST_T", node.output(0).storage);
  launch.type("COS_T", cosine.storage).type("SIN_T", node.input(kSine).storage);
  launch.src(kX).src(kCosine).src(kSine).dst(0).i32(pairs).i32(half);
  for (int axis = 1; axis < kMaxRank - 1; ++axis) launch.i32(dims[uz(axis)]);
  for (int axis = 0; axis < kMaxRank - 1; ++axis) launch.i32(strides[uz(axis)]);
  launch.range({uz(pairs / width)}, {kElementwiseGroup});
  kernel::Candidate candidate{"pairs", {launch}, {}};
  // A work-item reads both numbers of a pair before it writes them.
  if (x.storage == node.output(0).storage) candidate.in_place = {kX};
  return {candidate};
}

double flops(const NodeContext& node) {
  return 3.0 * static_cast<double>(node.output(0).shape.elements());
}

ir::Shapes infer_update(const NodeContext& node) {
  const ir::Shape &old = node.input(kOld).shape, &part = node.input(kPart).shape;
  const ir::Shape &cosine = node.input(kCosines).shape, &sine = node.input(kSines).shape;
  bool fits = part.rank() == old.rank() && node.input(kStart).shape.elements() == old.rank() &&
              part.rank() > 0 && part.back(0) == old.back(0);
  for (int i = 0; fits && i < old.rank(); ++i) fits = part[i] <= old[i];
  if (!fits)
    throw ShapeError("an update of shape " + part.str() + " does not fit into " + old.str());
  check_tables(part, cosine, sine);
  return {old};
}

std::vector<kernel::Candidate> update_candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor &old = node.input(kOld), &part = node.input(kPart), &dst = node.output(0);
  const ir::Tensor& cosine = node.input(kCosines);
  const int rank = old.shape.rank(), half = old.shape.back(0) / 2;
  const std::vector<int> strides = table_strides(part.shape, cosine.shape);
  const std::array<int, 6> big = six(old.shape.dims(), 1), small = six(part.shape.dims(), 1);
  const auto launch_of = [&](const char* entry, const ir::Tensor& each, bool reads_old) {
    const std::int64_t pairs = each.shape.elements() / 2;
    kernel::Launch launch("rotate/update.cl", entry);
    const int width = width_of(pairs, half, strides);
    launch.macro("FULL", cosine.shape.back(0) == part.shape.back(0) ? 1 : 0)
        .macro("VW", width)
        .type("SUM_T", DType::kF32);
    launch.type("OLD_T", old.storage).type("SRC_T", part.storage).type("DST_T", dst.storage);
    launch.type("COS_T", cosine.storage).type("SIN_T", node.input(kSines).storage);
    launch.type("INDEX_T", node.input(kStart).storage);
    if (reads_old) launch.src(kOld);
    launch.src(kPart).src(kStart).src(kCosines).src(kSines).dst(0);
    launch.i32(pairs).i32(rank).i32(half);
    for (int axis = 0; axis < kMaxRank - 1; ++axis) launch.i32(big[uz(axis)]);
    for (int axis = 0; axis < kMaxRank - 1; ++axis) launch.i32(small[uz(axis)]);
    for (int axis = 0; axis < kMaxRank - 1; ++axis) launch.i32(strides[uz(axis)]);
    return launch.range({uz(pairs / width)}, {kElementwiseGroup});
  };
  kernel::Candidate select{"select", {launch_of("rotate_select", old, true)}, {}};
  if (old.storage == dst.storage) {
    select.in_place = {kOld};
    select.over_input = launch_of("rotate_write", part, false);
  }
  return {std::move(select)};
}

double update_flops(const NodeContext& node) {
  return 3.0 * static_cast<double>(node.input(kPart).shape.elements());
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
  family.variants = {&kRotatedUpdateFamily};
  return family;
}();

const Family kRotatedUpdateFamily = [] {
  Family family;
  family.name = "rotate";
  family.variant = "update";
  family.bundled = true;
  family.core = true;
  family.infer = infer_update;
  family.candidates = update_candidates;
  family.flops = update_flops;
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

std::optional<ir::Node> rotated_update(const ir::Graph& graph, const ir::Node& update,
                                       const ir::Node& turned) {
  if (update.kind != &kDynamicUpdateSliceFamily || turned.kind != &kRotateFamily ||
      update.inputs[kPart] != turned.outputs[0] || update.predicate >= 0 || turned.predicate >= 0)
    return std::nullopt;
  const ir::Shape& old = graph.tensor(update.inputs[kOld]).shape;
  const ir::Shape& part = graph.tensor(turned.inputs[kX]).shape;
  if (old.rank() != part.rank() || old.back(0) != part.back(0)) return std::nullopt;
  ir::Node node = update;
  node.kind = &kRotatedUpdateFamily;
  node.inputs = {update.inputs[kOld], turned.inputs[kX], update.inputs[kStart],
                 turned.inputs[kCosine], turned.inputs[kSine]};
  node.attrs = nullptr;
  return node;
}

std::optional<RowsEnd> rows_end(const ir::Node& node) {
  const auto input = [&](int slot) { return node.inputs[uz(slot)]; };
  if (node.kind == &kRotateFamily) return RowsEnd{input(kX), input(kCosine), input(kSine)};
  if (node.kind == &kRotatedUpdateFamily)
    return RowsEnd{input(kPart), input(kCosines), input(kSines), input(kOld), input(kStart)};
  if (node.kind == &kDynamicUpdateSliceFamily)
    return RowsEnd{input(kPart), -1, -1, input(kOld), input(kStart)};
  return std::nullopt;
}

}  // namespace clgpu::ops
