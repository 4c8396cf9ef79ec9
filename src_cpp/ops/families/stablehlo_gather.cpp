// Family of STABLEHLO_GATHER: slices that begin where vectors of indices say.
#include <algorithm>
#include <numeric>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/region.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kStablehloGather = 201;

/// The part of TfLiteStablehloGatherParams that counts.
struct GatherParams {
  AxisList offset, collapsed, starts;
  std::int64_t index_axis;
  AxisList slice;
};

struct SlicesAttrs : ir::Attrs {
  std::vector<int> offset;     ///< axes of the result that lie within a slice
  std::vector<int> collapsed;  ///< axes of the input that the result lacks
  std::vector<int> starts;     ///< axes of the input to which the numbers of a vector belong
  std::vector<int> slice;      ///< sizes along the axes of the input
  int index_axis = 0;          ///< the axis of the vectors
  CLGPU_FIELDS(offset, collapsed, starts, slice, index_axis)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const auto* params = node.params<GatherParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const tfl::TensorView src = node.input(0), indices = node.input(1);
  if (auto refusal = check_moved(node, 0)) return *refusal;
  CLGPU_REFUSE_RANK(src, "input", 1);
  CLGPU_REFUSE_TYPE(indices, "the input of indices", DType::kI32, DType::kI64);
  CLGPU_REFUSE_RANK(indices, "the input of indices", 1);
  const int rank = indices.rank() - 1 + params->offset.count;
  CLGPU_REFUSE_IF(params->offset.count < 0 || rank > kMaxRank, Why::kRank, "the result",
                  "has more than 6 axes");
  SlicesAttrs attrs;
  for (const auto& [list, most, what, to] :
       {AxisCheck{&params->offset, rank, "the offset axes", &attrs.offset},
        AxisCheck{&params->collapsed, src.rank(), "the collapsed axes", &attrs.collapsed},
        AxisCheck{&params->starts, src.rank(), "the axes of the starts", &attrs.starts}}) {
    if (auto refusal = read_axes(*list, most, what, *to)) return *refusal;
  }
  CLGPU_REFUSE_IF(params->slice.count != src.rank(), Why::kParameter, "the sizes of the slice",
                  "are not one for each axis of the input");
  CLGPU_REFUSE_IF(attrs.offset.size() + attrs.collapsed.size() != uz(src.rank()), Why::kParameter,
                  "the offset and collapsed axes", "are not as many as the input has");
  for (int axis = 0; axis < src.rank(); ++axis) {
    const std::int64_t size = params->slice.axes[axis];
    if (size < 1 || size > INT32_MAX) return wrong_value("a size of the slice", size, "1 and more");
    attrs.slice.push_back(static_cast<int>(size));
  }
  if (params->index_axis < 0 || params->index_axis >= indices.rank()) {
    return wrong_value("the axis of the index vectors", params->index_axis,
                       "0 to " + std::to_string(indices.rank() - 1));
  }
  attrs.index_axis = static_cast<int>(params->index_axis);
  return Imported{share(attrs), {}};
}

bool contains(const std::vector<int>& list, int axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

/// Of each axis of the result the axis of the input that it runs along, or of the indices.
struct AxisOf {
  bool is_offset;
  int axis;
};
std::vector<AxisOf> axes_of(const NodeContext& node) {
  const auto& attrs = node.attrs<SlicesAttrs>();
  const int rank = node.input(1).shape.rank() - 1 + static_cast<int>(attrs.offset.size());
  std::vector<AxisOf> axes;
  int slice = 0, batch = 0;
  for (int axis = 0; axis < rank; ++axis) {
    if (contains(attrs.offset, axis)) {
      while (contains(attrs.collapsed, slice)) ++slice;
      axes.push_back({true, slice++});
    } else {
      if (batch == attrs.index_axis) ++batch;
      axes.push_back({false, batch++});
    }
  }
  return axes;
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<SlicesAttrs>();
  const ir::Shape &src = node.input(0).shape, &indices = node.input(1).shape;
  for (int axis = 0; axis < src.rank(); ++axis) {
    if (attrs.slice[uz(axis)] > src[axis]) {
      throw ShapeError("slices of " + std::to_string(attrs.slice[uz(axis)]) + " along axis " +
                       std::to_string(axis) + " are larger than the input " + src.str());
    }
  }
  if (indices[attrs.index_axis] != static_cast<int>(attrs.starts.size())) {
    throw ShapeError("the vectors of indices " + indices.str() + " along axis " +
                     std::to_string(attrs.index_axis) + " have not one number for each of " +
                     std::to_string(attrs.starts.size()) + " axes");
  }
  std::vector<int> dims;
  for (const AxisOf& of : axes_of(node))
    dims.push_back(of.is_offset ? attrs.slice[uz(of.axis)] : indices[of.axis]);
  return {ir::Shape(dims)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<SlicesAttrs>();
  const ir::Tensor &src = node.input(0), &indices = node.input(1), &dst = node.output(0);
  const std::vector<AxisOf> axes = axes_of(node);
  const int last = src.shape.rank() - 1;
  // Runs along the last axis, if no index moves them.
  const bool has_runs = !axes.empty() && axes.back().is_offset && axes.back().axis == last &&
                        !contains(attrs.starts, last);
  const int divisor = has_runs ? std::gcd(src.shape.back(0), dst.shape.back(0)) : 1;
  const MoveUnit unit = move_unit(src.storage, dst.storage, divisor);
  const auto stride = [](const ir::Shape& shape, int axis) {
    return static_cast<int>(shape.elements(axis + 1, shape.rank()));
  };
  const auto in_units = [&](int axis) {
    return axis == last ? 1 : stride(src.shape, axis) / unit.elements;
  };

  std::vector<int> sizes = dst.shape.dims(), along_src, along_indices, largest, moves;
  if (!sizes.empty()) sizes.back() /= unit.elements;
  for (const AxisOf& of : axes) {
    along_src.push_back(of.is_offset ? in_units(of.axis) : 0);
    along_indices.push_back(of.is_offset ? 0 : stride(indices.shape, of.axis));
  }
  for (const int axis : attrs.starts) {
    largest.push_back(src.shape[axis] - attrs.slice[uz(axis)]);
    moves.push_back(in_units(axis));
  }
  std::vector<int> table;
  for (const auto& row : {six(sizes, 1), six(along_src, 0), six(along_indices, 0)})
    table.insert(table.end(), row.begin(), row.end());
  for (std::vector<int>* row : {&largest, &moves}) {
    row->resize(kMaxRank, 0);
    table.insert(table.end(), row->begin(), row->end());
  }
  const std::int64_t n = dst.shape.elements() / unit.elements;
  kernel::Launch launch("stablehlo_gather/gather.cl", "stablehlo_gather_slices");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  launch.type("INDEX_T", indices.storage);
  launch.src(0).src(1).scratch_in(0).dst(0).i32(n);
  launch.i32(static_cast<std::int64_t>(attrs.starts.size()));
  launch.i32(stride(indices.shape, attrs.index_axis)).range({uz(n)}, {kElementwiseGroup});
  return {{"slices", {launch}, {kernel::table(table)}}};
}

}  // namespace

extern const Family kStablehloGatherFamily;
const Family kStablehloGatherFamily = [] {
  Family family;
  family.name = "stablehlo_gather";
  family.attrs = ir::attrs_type<SlicesAttrs>();
  family.builtins = {{kStablehloGather, "STABLEHLO_GATHER", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
