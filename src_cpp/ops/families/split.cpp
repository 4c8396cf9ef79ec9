// Family of SPLIT, SPLIT_V and UNPACK: one launch per output.
#include "ops/families/split.hpp"

#include <algorithm>
#include <numeric>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/row_rules.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kSplit = 49, kSplitV = 102, kUnpack = 88;

struct SplitAttrs : ir::Attrs {
  int src = 0;  ///< the input that is split
  int axis = 0;
  std::vector<std::int64_t> sizes;  ///< along the axis, -1 at most once; empty for equal parts
  bool drop_axis = false;           ///< UNPACK: parts of size 1 lose the axis
  CLGPU_FIELDS(src, axis, sizes, drop_axis)
};

OrRefusal<int> constant_axis(const tfl::NodeView& node, int input, int rank) {
  const auto axes = node.input(input).ints();
  CLGPU_REFUSE_IF(!axes || axes->size() != 1, Why::kRunTime, "the axis");
  return checked_axis(axes->front(), rank);
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  SplitAttrs attrs;
  if (auto refusal = check_moved(node, node.builtin() == kSplit ? 1 : 0)) return *refusal;
  if (node.builtin() == kUnpack) {
    const auto* params = node.params<tfl::UnpackParams>();
    CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
    const int rank = node.input(0).rank();
    const auto axis = checked_axis(params->axis, rank);
    if (!axis) return axis.refusal();
    attrs.axis = *axis;
    attrs.drop_axis = true;
    return Imported{share(attrs), {}};
  }
  const bool equal = node.builtin() == kSplit;
  attrs.src = equal ? 1 : 0;
  const auto axis = constant_axis(node, equal ? 0 : 2, node.input(attrs.src).rank());
  if (!axis) return axis.refusal();
  attrs.axis = *axis;
  if (!equal) {
    const auto sizes = node.input(1).ints();
    CLGPU_REFUSE_IF(!sizes, Why::kRunTime, "the tensor of sizes");
    CLGPU_REFUSE_IF(static_cast<int>(sizes->size()) != node.output_count(), Why::kParameter, "",
                    "there are " + std::to_string(sizes->size()) + " sizes for " +
                        std::to_string(node.output_count()) + " outputs");
    int unknown = 0;
    for (const std::int64_t size : *sizes) {
      if (size < -1) return wrong_value("a size", size, "-1 and more");
      unknown += size == -1 ? 1 : 0;
    }
    CLGPU_REFUSE_IF(unknown > 1, Why::kParameter, "more than one size", "is -1");
    attrs.sizes = *sizes;
  }
  return Imported{share(attrs), {}};
}

/// Sizes of the parts along the axis.
std::vector<int> part_sizes(const SplitAttrs& attrs, const ir::Shape& src, int parts) {
  const int extent = src[attrs.axis];
  const std::string what = "axis " + std::to_string(attrs.axis) + " of " + src.str();
  if (attrs.drop_axis && extent != parts) {
    throw ShapeError(what + " does not have one element for each of " + std::to_string(parts) +
                     " outputs");
  }
  if (attrs.sizes.empty()) {
    if (extent % parts != 0) {
      throw ShapeError(what + " does not divide into " + std::to_string(parts) + " equal parts");
    }
    return std::vector<int>(uz(parts), extent / parts);
  }
  std::vector<int> sizes;
  int* unknown = nullptr;
  std::int64_t known = 0;
  sizes.reserve(attrs.sizes.size());
  for (const std::int64_t size : attrs.sizes) {
    sizes.push_back(static_cast<int>(size));
    if (size == -1) {
      unknown = &sizes.back();
    } else {
      known += size;
    }
  }
  if (unknown != nullptr && known <= extent) {
    *unknown = static_cast<int>(extent - known);
    known = extent;
  }
  if (known != extent) throw ShapeError("the sizes do not add up to " + what);
  return sizes;
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<SplitAttrs>();
  const ir::Shape& src = node.input(attrs.src).shape;
  ir::Shapes shapes;
  for (const int size : part_sizes(attrs, src, node.output_count())) {
    std::vector<int> dims = src.dims();
    if (attrs.drop_axis) {
      dims.erase(dims.begin() + attrs.axis);
    } else {
      dims[uz(attrs.axis)] = size;
    }
    shapes.emplace_back(dims);
  }
  return shapes;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<SplitAttrs>();
  const ir::Tensor& src = node.input(attrs.src);
  const std::int64_t rows = src.shape.elements(0, attrs.axis);
  const std::int64_t inner = src.shape.elements(attrs.axis + 1, src.shape.rank());
  const std::int64_t src_cols = src.shape[attrs.axis] * inner;
  const std::vector<int> sizes = part_sizes(attrs, src.shape, node.output_count());

  kernel::Candidate rows_each{"rows", {}, {}};
  std::int64_t first = 0;
  for (int i = 0; i < node.output_count(); ++i) {
    const std::int64_t cols = sizes[uz(i)] * inner;
    const MoveUnit unit =
        move_unit(src.storage, node.output(i).storage, std::gcd(std::gcd(cols, src_cols), first));
    const std::int64_t n = rows * cols / unit.elements;
    kernel::Launch launch("split/split.cl", "split_rows");
    launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
    launch.src(attrs.src).dst(i);
    launch.i32(n).i32(cols / unit.elements).i32(src_cols / unit.elements);
    launch.i32(first / unit.elements).range({uz(n)}, {kElementwiseGroup});
    rows_each.launches.push_back(launch);
    first += cols;
  }
  return {rows_each};
}

/// Along columns or channels: the rows stay the same.
int unit(const NodeContext& node) {
  const auto& attrs = node.attrs<SplitAttrs>();
  return !attrs.drop_axis && attrs.axis >= 2 ? 1 : 0;
}

RowNeed need(const NodeContext& node, int input, RowRange rows) {
  if (input != node.attrs<SplitAttrs>().src) return {};
  return {RowNeed::Kind::kExact, rows};
}

const RowRules kRows{unit, need, kRowwise.attrs};

}  // namespace

extern const Family kSplitFamily;
const Family kSplitFamily = [] {
  Family family;
  family.name = "split";
  family.attrs = ir::attrs_type<SplitAttrs>();
  family.builtins = {{kSplit, "SPLIT", 2, 0, kAnyNumber, 1},
                     {kSplitV, "SPLIT_V", 3, 0, kAnyNumber},
                     {kUnpack, "UNPACK", 1, 0, kAnyNumber}};
  family.builtins[0].settings = {0};
  family.builtins[1].settings = {1, 2};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRows;
  family.flops = no_flops;
  return family;
}();

namespace {

/// What a node splits along the last axis, which the parts keep; -1 for every other node.
int split_along_last(const ir::Graph& graph, const ir::Node& node) {
  if (node.kind != &kSplitFamily) return -1;
  const auto& attrs = static_cast<const SplitAttrs&>(*node.attrs);
  const int src = node.inputs[uz(attrs.src)];
  return !attrs.drop_axis && attrs.axis == graph.tensor(src).shape.rank() - 1 ? src : -1;
}

}  // namespace

int split_into_halves(const ir::Graph& graph, const ir::Node& node) {
  if (node.outputs.size() != 2) return -1;
  const bool halves = graph.tensor(node.outputs[0]).shape == graph.tensor(node.outputs[1]).shape;
  return halves ? split_along_last(graph, node) : -1;
}

int split_into_elements(const ir::Graph& graph, const ir::Node& node) {
  const int src = split_along_last(graph, node);
  const bool elements =
      src >= 0 && std::all_of(node.outputs.begin(), node.outputs.end(),
                              [&](int id) { return graph.tensor(id).shape.back(0) == 1; });
  return elements ? src : -1;
}

}  // namespace clgpu::ops
