// Family of DEPTH_TO_SPACE, SPACE_TO_DEPTH, BATCH_TO_SPACE_ND and SPACE_TO_BATCH_ND.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/row_rules.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kDepthToSpace = 5, kSpaceToDepth = 26, kBatchToSpace = 37, kSpaceToBatch = 38;

/// Largest block along an axis: the number of elements of a two-dimensional block fits an int.
constexpr int kLargestBlock = 32767;

struct SpaceDepthAttrs : ir::Attrs {
  int builtin = kDepthToSpace;
  int block_h = 1, block_w = 1;
  /// Elements of padding (SPACE_TO_BATCH_ND) or crop (BATCH_TO_SPACE_ND).
  int top = 0, bottom = 0, left = 0, right = 0;
  CLGPU_FIELDS(builtin, block_h, block_w, top, bottom, left, right)
};

OrRefusal<Imported> import_depth(const tfl::NodeView& node) {
  const auto* params = node.params<tfl::BlockParams>();
  CLGPU_REFUSE_RANK(node.input(0), "input", 4, 4);
  CLGPU_REFUSE_IF(params == nullptr || params->block_size < 1 || params->block_size > kLargestBlock,
                  Why::kParameter, "the block size", "is not one of 1 to 32767");
  SpaceDepthAttrs attrs;
  attrs.builtin = node.builtin();
  attrs.block_h = attrs.block_w = params->block_size;
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import_batch(const tfl::NodeView& node) {
  const int rank = node.input(0).rank();
  const auto block = node.input(1).ints(), margins = node.input(2).ints();
  CLGPU_REFUSE_RANK(node.input(0), "input", 3, 4);
  CLGPU_REFUSE_IF(!block, Why::kRunTime, "the block shape");
  CLGPU_REFUSE_IF(!margins, Why::kRunTime, "the tensor of paddings or crops");
  const std::size_t spatial = uz(rank - 2);
  CLGPU_REFUSE_IF(block->size() != spatial || margins->size() != 2 * spatial, Why::kParameter,
                  "the block shape", "does not fit the axes of the input");
  for (const std::int64_t b : *block)
    CLGPU_REFUSE_IF(b < 1 || b > kLargestBlock, Why::kParameter, "a block size",
                    "is not one of 1 to 32767");
  for (const std::int64_t m : *margins)
    CLGPU_REFUSE_IF(m < 0, Why::kParameter, "a padding or crop", "is negative");
  SpaceDepthAttrs attrs;
  attrs.builtin = node.builtin();
  const auto at = [](const std::vector<std::int64_t>& v, std::size_t i) {
    return static_cast<int>(v[i]);
  };
  attrs.block_h = at(*block, 0);
  attrs.top = at(*margins, 0);
  attrs.bottom = at(*margins, 1);
  if (spatial == 2) {
    attrs.block_w = at(*block, 1);
    attrs.left = at(*margins, 2);
    attrs.right = at(*margins, 3);
  }
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const bool depth = node.builtin() == kDepthToSpace || node.builtin() == kSpaceToDepth;
  return depth ? import_depth(node) : import_batch(node);
}

/// NHWC sizes; a tensor with three axes has w = 1.
struct Nhwc {
  int n, h, w, c;
};

/// The same, before the sizes are checked for overflow.
struct WideNhwc {
  std::int64_t n, h, w, c;
};

Nhwc nhwc(const ir::Shape& shape) {
  return {shape[0], shape[1], shape.rank() == 4 ? shape[2] : 1, shape.back(0)};
}

std::int64_t divided(std::int64_t value, int divisor, const NodeContext& node, const char* what) {
  if (value % divisor != 0) {
    throw ShapeError(node.input(0).shape.str() + ": " + std::string(what) + " " +
                     std::to_string(value) + " is not a multiple of " + std::to_string(divisor));
  }
  return value / divisor;
}

ir::Shapes infer(const NodeContext& node) {
  const auto& a = node.attrs<SpaceDepthAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const Nhwc s = nhwc(src);
  WideNhwc d{s.n, s.h, s.w, s.c};
  const int blocks = a.block_h * a.block_w;
  switch (a.builtin) {
    case kDepthToSpace:
      d = {d.n, d.h * a.block_h, d.w * a.block_w, divided(d.c, blocks, node, "channel count")};
      break;
    case kSpaceToDepth:
      d = {d.n, divided(d.h, a.block_h, node, "height"), divided(d.w, a.block_w, node, "width"),
           d.c * blocks};
      break;
    case kSpaceToBatch:
      d = {d.n * blocks, divided(d.h + a.top + a.bottom, a.block_h, node, "padded height"),
           divided(d.w + a.left + a.right, a.block_w, node, "padded width"), d.c};
      break;
    default:
      d = {divided(d.n, blocks, node, "batch"), d.h * a.block_h - a.top - a.bottom,
           d.w * a.block_w - a.left - a.right, d.c};
      if (d.h < 0 || d.w < 0) {
        throw ShapeError("the crops exceed the output of " + src.str());
      }
  }
  std::vector<int> dims;
  for (const std::int64_t extent : {d.n, d.h, d.w, d.c}) {
    if (extent > INT32_MAX)
      throw ShapeError("the result of " + src.str() + " has an axis of " + std::to_string(extent) +
                       " elements; supported: up to 2147483647");
    dims.push_back(static_cast<int>(extent));
  }
  if (src.rank() == 3) dims.erase(dims.begin() + 2);
  return {ir::Shape(dims)};
}

/// Moves blocks between depth and space: a permutation of [n, h, block_h, w, block_w, c].
kernel::Launch blocks(const NodeContext& node) {
  const auto& a = node.attrs<SpaceDepthAttrs>();
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const bool to_space = a.builtin == kDepthToSpace;
  const Nhwc space = nhwc(to_space ? dst.shape : src.shape);
  const int h = space.h / a.block_h, w = space.w / a.block_w;
  StridedCopy copy;
  if (to_space) {
    copy.dims = {space.n, h, a.block_h, w, a.block_w, space.c};
    const auto s = ir::Shape{space.n, h, w, a.block_h, a.block_w, space.c}.strides();
    copy.strides = {s[0], s[1], s[3], s[2], s[4], s[5]};
  } else {
    copy.dims = {space.n, h, w, a.block_h, a.block_w, space.c};
    const auto s = ir::Shape{space.n, h, a.block_h, w, a.block_w, space.c}.strides();
    copy.strides = {s[0], s[1], s[3], s[2], s[4], s[5]};
  }
  return strided_copy(copy, src.storage, dst.storage);
}

kernel::Launch batch(const NodeContext& node) {
  const auto& a = node.attrs<SpaceDepthAttrs>();
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const bool to_space = a.builtin == kBatchToSpace;
  const Nhwc s = nhwc(src.shape), d = nhwc(dst.shape);
  const MoveUnit unit = move_unit(src.storage, dst.storage, s.c);
  const std::int64_t n = dst.shape.elements() / unit.elements;

  kernel::Launch launch("space_depth/batch.cl",
                        to_space ? "space_depth_batch_to_space" : "space_depth_space_to_batch");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  launch.src(0).dst(0).i32(n).i32(s.c / unit.elements).i32(d.h).i32(d.w);
  launch.i32(to_space ? d.n : s.n).i32(s.h).i32(s.w);
  launch.i32(a.block_h).i32(a.block_w).i32(a.top).i32(a.left);
  if (!to_space) launch.i32(fill_of(dst));
  launch.range({uz(n)}, {kElementwiseGroup});
  return launch;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const int builtin = node.attrs<SpaceDepthAttrs>().builtin;
  const bool depth = builtin == kDepthToSpace || builtin == kSpaceToDepth;
  return {{"gather", {depth ? blocks(node) : batch(node)}, {}}};
}

/// The rows of a block; 0 for operations on batches, which are not computed by rows.
int unit(const NodeContext& node) {
  const auto& attrs = node.attrs<SpaceDepthAttrs>();
  return attrs.builtin == kDepthToSpace ? attrs.block_h : attrs.builtin == kSpaceToDepth ? 1 : 0;
}

RowNeed need(const NodeContext& node, int, RowRange rows) {
  const auto& attrs = node.attrs<SpaceDepthAttrs>();
  const int block = attrs.block_h;
  if (attrs.builtin == kSpaceToDepth)
    return {RowNeed::Kind::kExact, {rows.first * block, rows.end * block}};
  return {RowNeed::Kind::kExact, {floor_of(rows.first, block), ceil_of(rows.end, block)}};
}

const RowRules kRows{unit, need, kRowwise.attrs};

}  // namespace

extern const Family kSpaceDepthFamily;
const Family kSpaceDepthFamily = [] {
  Family family;
  family.name = "space_depth";
  family.attrs = ir::attrs_type<SpaceDepthAttrs>();
  family.builtins = {{kDepthToSpace, "DEPTH_TO_SPACE"},
                     {kSpaceToDepth, "SPACE_TO_DEPTH"},
                     {kBatchToSpace, "BATCH_TO_SPACE_ND", 3},
                     {kSpaceToBatch, "SPACE_TO_BATCH_ND", 3}};
  for (Operation& operation : family.builtins) operation.settings = {1, 2};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kMovedIntegers;
  family.rows = &kRows;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
