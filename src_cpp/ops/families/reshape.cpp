// Family of the views: RESHAPE, SQUEEZE and EXPAND_DIMS. They launch nothing.
#include "ops/families/reshape.hpp"

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {
namespace {

constexpr int kReshape = 22, kSqueeze = 43, kExpandDims = 70;

struct ViewAttrs : ir::Attrs {
  int builtin = kReshape;
  /// RESHAPE: the new shape, -1 at most once; SQUEEZE: axes to remove, empty for all of size 1;
  /// EXPAND_DIMS: the new axis.
  std::vector<int> values;
  CLGPU_FIELDS(builtin, values)
};

OrRefusal<std::vector<int>> new_shape(const tfl::NodeView& node) {
  std::vector<int> shape;
  // As in the stock kernel: if the input is not a vector of int32, the parameters are used.
  if (node.has_input(1) && tfl::dtype_of(node.input(1).tflite_type()) == DType::kI32 &&
      node.input(1).rank() == 1) {
    const auto values = node.input(1).ints();
    CLGPU_REFUSE_IF(!values, Why::kRunTime, "the new shape");
    shape.assign(values->begin(), values->end());
  } else {
    const auto* params = node.params<tfl::ReshapeParams>();
    CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
    if (params->num_dimensions < 0 || params->num_dimensions > 8)
      return wrong_value("the number of new axes", params->num_dimensions, "0 to 8");
    shape.assign(params->shape, params->shape + params->num_dimensions);
    // Old converters wrote a scalar as the shape [0].
    if (shape == std::vector<int>{0}) shape.clear();
  }
  int unknown = 0;
  for (const int size : shape) {
    if (size < -1) return wrong_value("a size of the new shape", size, "-1 and more");
    unknown += size == -1 ? 1 : 0;
  }
  CLGPU_REFUSE_IF(unknown > 1, Why::kParameter, "the new shape", "contains -1 more than once");
  return shape;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  ViewAttrs attrs;
  attrs.builtin = node.builtin();
  const int rank = node.input(0).rank();
  if (attrs.builtin == kReshape) {
    const auto shape = new_shape(node);
    if (!shape) return shape.refusal();
    attrs.values = *shape;
  } else if (attrs.builtin == kSqueeze) {
    const auto* params = node.params<tfl::SqueezeParams>();
    const int count = params == nullptr ? 0 : params->num_squeeze_dims;
    if (count < 0 || count > 8) return wrong_value("the number of axes to drop", count, "0 to 8");
    for (int i = 0; i < count; ++i) {
      const auto axis = checked_axis(params->squeeze_dims[i], rank);
      if (!axis) return axis.refusal();
      attrs.values.push_back(*axis);
    }
  } else {
    const auto axes = node.input(1).ints();
    CLGPU_REFUSE_IF(!axes, Why::kRunTime, "the axis");
    CLGPU_REFUSE_IF(axes->size() != 1, Why::kParameter, "", "there is more than one new axis");
    const auto axis = checked_axis(axes->front(), rank + 1);
    if (!axis) return axis.refusal();
    attrs.values.push_back(*axis);
  }
  return Imported{share(attrs), {}};
}

ir::Shape reshaped(const ir::Shape& src, std::vector<int> shape) {
  std::int64_t known = 1;
  int* unknown = nullptr;
  for (int& size : shape) {
    if (size == -1) {
      unknown = &size;
    } else {
      known *= size;
    }
  }
  const std::string wanted = ir::Shape(shape).str();
  if (unknown != nullptr && known != 0) {
    *unknown = static_cast<int>(src.elements() / known);
    known *= *unknown;
  }
  if (known != src.elements()) {
    throw ShapeError(src.str() + " has " + std::to_string(src.elements()) +
                     " elements, which do not fill the shape " + wanted);
  }
  return ir::Shape(shape);
}

ir::Shape squeezed(const ir::Shape& src, const std::vector<int>& axes) {
  std::vector<bool> drop(uz(src.rank()));
  for (const int axis : axes) {
    if (src[axis] != 1) {
      throw ShapeError("axis " + std::to_string(axis) + " of " + src.str() + " is not of size 1");
    }
    drop[uz(axis)] = true;
  }
  std::vector<int> dims;
  for (int i = 0; i < src.rank(); ++i) {
    if (axes.empty() ? src[i] != 1 : !drop[uz(i)]) dims.push_back(src[i]);
  }
  return ir::Shape(dims);
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<ViewAttrs>();
  const ir::Shape& src = node.input(0).shape;
  if (attrs.builtin == kReshape) return {reshaped(src, attrs.values)};
  if (attrs.builtin == kSqueeze) return {squeezed(src, attrs.values)};
  std::vector<int> dims = src.dims();
  dims.insert(dims.begin() + attrs.values.front(), 1);
  return {ir::Shape(dims)};
}

}  // namespace

extern const Family kReshapeFamily;
const Family kReshapeFamily = [] {
  Family family;
  family.name = "reshape";
  family.attrs = ir::attrs_type<ViewAttrs>();
  family.is_view = true;
  family.builtins = {
      {kReshape, "RESHAPE", 1, 1}, {kSqueeze, "SQUEEZE"}, {kExpandDims, "EXPAND_DIMS", 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.most_axes = kMostAxes;
  family.import = import;
  family.infer = infer;
  family.allows_quantized = true;
  family.integers = &kMovedIntegers;
  return family;
}();

ir::Node reshape_of(const ir::Node& of, int source, int result, const ir::Shape& shape) {
  ViewAttrs attrs;
  attrs.values = shape.dims();
  ir::Node node;
  node.kind = &kReshapeFamily;
  node.op = of.op;
  node.tflite_index = of.tflite_index;
  node.inputs = {source};
  node.outputs = {result};
  node.attrs = share(attrs);
  return node;
}

}  // namespace clgpu::ops
