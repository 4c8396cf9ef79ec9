// Family of STABLEHLO_SCATTER: windows of updates combined with a tensor, where vectors of indices
// say.
#include <algorithm>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/region.hpp"

namespace clgpu::ops {
namespace {

constexpr int kStablehloScatter = 190;

/// TfLiteStablehloScatterParams.
struct ScatterParams {
  bool are_sorted;
  AxisList window, inserted, starts;
  std::int64_t index_axis;
  bool are_unique;
  std::int32_t region;
};

struct WindowsAttrs : ir::Attrs {
  int combine = 0;            ///< a Combine
  std::vector<int> window;    ///< axes of the updates that lie within a window, as in the input
  std::vector<int> inserted;  ///< axes of the input along which windows have one element
  std::vector<int> starts;    ///< axes of the input to which the numbers of a vector belong
  int index_axis = 0;         ///< the axis of the vectors
  CLGPU_FIELDS(combine, window, inserted, starts, index_axis)
  static const char* words(std::string_view member) {
    return member == "combine" ? "replace, add, multiply, minimum, maximum" : "";
  }
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const auto* params = node.params<ScatterParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const tfl::TensorView src = node.input(0), indices = node.input(1), updates = node.input(2);
  CLGPU_REFUSE_TYPE(src, "input", DType::kF32, DType::kI64, DType::kI32, DType::kI16, DType::kI8,
                    DType::kU8);
  CLGPU_REFUSE_IF(updates.tflite_type() != src.tflite_type(), Why::kOperands,
                  "the updates and the input", "differ in type");
  for (const int slot : {0, 2}) {
    if (auto refusal = check_moved(node, slot)) return *refusal;
  }
  CLGPU_REFUSE_TYPE(indices, "the input of indices", DType::kI32, DType::kI64);
  CLGPU_REFUSE_RANK(src, "input", 1);
  CLGPU_REFUSE_RANK(indices, "the input of indices", 1);
  WindowsAttrs attrs;
  for (const auto& [list, most, what, to] :
       {AxisCheck{&params->window, updates.rank(), "the window axes", &attrs.window},
        AxisCheck{&params->inserted, src.rank(), "the inserted axes", &attrs.inserted},
        AxisCheck{&params->starts, src.rank(), "the axes of the starts", &attrs.starts}}) {
    if (auto refusal = read_axes(*list, most, what, *to)) return *refusal;
  }
  CLGPU_REFUSE_IF(attrs.window.size() + attrs.inserted.size() != uz(src.rank()), Why::kParameter,
                  "the window and inserted axes", "are not as many as the input has");
  CLGPU_REFUSE_IF(updates.rank() - static_cast<int>(attrs.window.size()) != indices.rank() - 1,
                  Why::kParameter, "the updates", "have not the axes of windows and vectors");
  if (params->index_axis < 0 || params->index_axis >= indices.rank()) {
    return wrong_value("the axis of the index vectors", params->index_axis,
                       "0 to " + std::to_string(indices.rank() - 1));
  }
  attrs.index_axis = static_cast<int>(params->index_axis);
  const auto combine = combine_of(node, params->region);
  CLGPU_REFUSE_IF(!combine || *combine >= Combine::kAll, Why::kParameter, "the region",
                  "is none of an update, ADD, MULTIPLY, MAXIMUM and MINIMUM");
  attrs.combine = static_cast<int>(*combine);
  return Imported{share(attrs), {}};
}

bool contains(const std::vector<int>& list, int axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

/// Of each axis of the input the axis of the updates along which windows lie; -1: they have one
/// element.
std::vector<int> window_axes(const NodeContext& node) {
  const auto& attrs = node.attrs<WindowsAttrs>();
  std::vector<int> axes;
  std::size_t next = 0;
  for (int axis = 0; axis < node.input(0).shape.rank(); ++axis)
    axes.push_back(contains(attrs.inserted, axis) ? -1 : attrs.window[next++]);
  return axes;
}

/// Axes of the updates along which vectors follow each other.
std::vector<int> vector_axes(const NodeContext& node) {
  std::vector<int> axes;
  for (int axis = 0; axis < node.input(2).shape.rank(); ++axis) {
    if (!contains(node.attrs<WindowsAttrs>().window, axis)) axes.push_back(axis);
  }
  return axes;
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<WindowsAttrs>();
  const ir::Shape &src = node.input(0).shape, &indices = node.input(1).shape;
  const ir::Shape& updates = node.input(2).shape;
  const std::vector<int> windows = window_axes(node), vectors = vector_axes(node);
  bool fits = indices[attrs.index_axis] == static_cast<int>(attrs.starts.size());
  for (int axis = 0, next = 0; axis < indices.rank(); ++axis) {
    if (axis != attrs.index_axis) fits = fits && indices[axis] == updates[vectors[uz(next++)]];
  }
  if (!fits) {
    throw ShapeError("updates " + updates.str() + " at indices " + indices.str() +
                     " do not fit the input " + src.str());
  }
  // The runtimes combine in the order of the updates. Only along such an axis do windows meet whose
  // order of vectors is another one.
  for (int axis = 0; axis < src.rank(); ++axis) {
    const int along = windows[uz(axis)];
    const bool moves = along >= 0 && updates[along] > 1 && contains(attrs.starts, axis);
    if (moves && !vectors.empty() && along < vectors.back()) {
      throw ShapeError("windows of updates " + updates.str() + " may meet along axis " +
                       std::to_string(axis) + " in another order than that of their vectors");
    }
  }
  return {src};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<WindowsAttrs>();
  const ir::Tensor &src = node.input(0), &indices = node.input(1), &updates = node.input(2);
  const auto stride = [](const ir::Shape& shape, int axis) {
    return static_cast<int>(shape.elements(axis + 1, shape.rank()));
  };
  std::vector<int> window, window_strides, vectors, vector_strides, axes;
  for (const int axis : window_axes(node)) {
    window.push_back(axis < 0 ? 1 : updates.shape[axis]);
    window_strides.push_back(axis < 0 ? 0 : stride(updates.shape, axis));
  }
  for (const int axis : vector_axes(node)) {
    vectors.push_back(updates.shape[axis]);
    vector_strides.push_back(stride(updates.shape, axis));
  }
  for (const int axis : attrs.starts) axes.push_back(kMaxRank - src.shape.rank() + axis);
  axes.resize(kMaxRank, 0);
  std::vector<int> table;
  for (const auto& row : {six(src.shape.dims(), 1), six(window, 1), six(window_strides, 0),
                          six(vectors, 1), six(vector_strides, 0), six(axes, 0)}) {
    table.insert(table.end(), row.begin(), row.end());
  }
  std::int64_t count = 1;
  for (const int size : vectors) count *= size;

  const auto launch_of = [&](const char* entry, std::int64_t items) {
    kernel::Launch launch("stablehlo_scatter/scatter.cl", entry);
    launch.type("SRC_T", src.storage).type("UPDATE_T", updates.storage);
    launch.type("DST_T", node.output(0).storage).type("INDEX_T", indices.storage);
    launch.macro("OP", attrs.combine).range({uz(items)}, {kElementwiseGroup});
    return launch;
  };
  auto places = launch_of("stablehlo_scatter_places", count);
  places.src(1).scratch_in(0).scratch_out(1).i32(count);
  places.i32(static_cast<std::int64_t>(attrs.starts.size()));
  places.i32(stride(indices.shape, attrs.index_axis));
  const std::int64_t n = src.shape.elements();
  auto combine = launch_of("stablehlo_scatter_combine", n);
  combine.src(0).src(2).scratch_in(1).scratch_in(0).dst(0).i32(n).i32(count);
  return {{"search", {places, combine}, {kernel::table(table), {count * 7 * 4}}}};
}

/// Each element looks at the places of all vectors.
double flops(const NodeContext& node) {
  double count = static_cast<double>(node.output(0).shape.elements());
  for (const int axis : vector_axes(node)) count *= node.input(2).shape[axis];
  return count;
}

}  // namespace

extern const Family kStablehloScatterFamily;
const Family kStablehloScatterFamily = [] {
  Family family;
  family.name = "stablehlo_scatter";
  family.attrs = ir::attrs_type<WindowsAttrs>();
  family.builtins = {{kStablehloScatter, "STABLEHLO_SCATTER", 3}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
