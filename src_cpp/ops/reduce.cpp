// Room of MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_ANY and REDUCE_ALL.
#include "ops/reduce.hpp"

#include "ops/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kMeanCode = 40, kSumCode = 74, kProdCode = 81, kMaxCode = 82, kMinCode = 89,
              kAnyCode = 91, kAllCode = 140;

/// Value of the macro OP.
enum class Op : int { kSum = 0, kMean = 1, kMax = 2, kMin = 3, kProd = 4 };

struct ReduceAttrs : ir::Attrs {
  Op op = Op::kSum;
  std::vector<std::int64_t> axes;  ///< as in the model: unordered, maybe negative or repeated
  bool keep_dims = false;
};

Op op_of(int builtin) {
  switch (builtin) {
    case kMeanCode:
      return Op::kMean;
    case kMaxCode:
    case kAnyCode:
      return Op::kMax;  // of bytes 0 and 1
    case kMinCode:
    case kAllCode:
      return Op::kMin;
    case kProdCode:
      return Op::kProd;
    default:
      return Op::kSum;
  }
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView src = node.input(0);
  if (node.builtin() == kAnyCode || node.builtin() == kAllCode) {
    CLGPU_REFUSE_TYPE(src, "input", DType::kBool);
  } else {
    CLGPU_REFUSE_TYPE(src, "input", DType::kF32, DType::kI32, DType::kI64);
  }
  const auto* params = node.params<tfl::ReducerParams>();
  CLGPU_REFUSE_IF(params == nullptr, "the node has no parameters");
  const auto axes = node.input(1).ints();
  CLGPU_REFUSE_IF(!axes, "the axes are computed at run time");
  // The runtime ignores the axes of a scalar.
  for (const std::int64_t axis : *axes) {
    CLGPU_REFUSE_IF(
        src.rank() > 0 && !normalize_axis(axis, src.rank()),
        "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(src.rank()));
  }
  ReduceAttrs attrs;
  attrs.op = op_of(node.builtin());
  attrs.axes = *axes;
  attrs.keep_dims = params->keep_dims;
  return Imported{share(attrs), {}};
}

/// Which axes of a shape are reduced.
std::vector<bool> reduced_axes(const ReduceAttrs& attrs, const ir::Shape& src) {
  std::vector<bool> reduced(uz(src.rank()), false);
  if (src.rank() == 0) return reduced;
  for (const std::int64_t axis : attrs.axes) {
    const auto index = normalize_axis(axis, src.rank());
    if (!index) {
      throw ShapeError("axis " + std::to_string(axis) + " is out of range for " + src.str());
    }
    reduced[uz(*index)] = true;
  }
  return reduced;
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<ReduceAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const std::vector<bool> reduced = reduced_axes(attrs, src);
  std::vector<int> dims;
  for (int axis = 0; axis < src.rank(); ++axis) {
    if (!reduced[uz(axis)]) {
      dims.push_back(src[axis]);
    } else if (attrs.keep_dims) {
      dims.push_back(1);
    }
  }
  return {ir::Shape(dims)};
}

/// Axes of one sort, neighbours merged, aligned to the right; absent ones have size 1.
struct Axes {
  static constexpr int kMost = 3;  // six axes alternate between two sorts
  int size[kMost] = {1, 1, 1};
  int stride[kMost] = {0, 0, 0};
  int used = 0;

  void add(int axis_size, int axis_stride) {
    for (int i = 0; i + 1 < kMost; ++i) {
      size[i] = size[i + 1];
      stride[i] = stride[i + 1];
    }
    size[kMost - 1] = axis_size;
    stride[kMost - 1] = axis_stride;
    ++used;
  }
  void widen(int axis_size, int axis_stride) {
    size[kMost - 1] *= axis_size;
    stride[kMost - 1] = axis_stride;
  }
  std::int64_t elements() const { return std::int64_t{size[0]} * size[1] * size[2]; }
};

const char* accumulator(DType storage) {
  if (storage == DType::kI64) return "long";
  return is_float(storage) ? "float" : "int";
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<ReduceAttrs>();
  const ir::Tensor& src = node.input(0);
  const std::vector<bool> is_reduced = reduced_axes(attrs, src.shape);
  const std::vector<int> strides = src.shape.strides();
  Axes kept, reduced;
  int sort_before = -1;  // 0 kept, 1 reduced
  for (int axis = 0; axis < src.shape.rank(); ++axis) {
    const int size = src.shape[axis], stride = strides[uz(axis)];
    if (size == 1) continue;
    const int sort = is_reduced[uz(axis)] ? 1 : 0;
    Axes& axes = sort == 1 ? reduced : kept;
    if (sort == sort_before) {
      axes.widen(size, stride);
    } else {
      axes.add(size, stride);
    }
    sort_before = sort;
  }
  const std::int64_t outputs = kept.elements(), count = reduced.elements();
  const bool adjacent = sort_before == 1;
  // Integer means add up in 64 bits, like the runtime's.
  const bool wide = attrs.op == Op::kMean && !is_float(src.storage);

  std::vector<kernel::Candidate> list;
  for (const Sharing& sharing : sharings(outputs, count, adjacent, device)) {
    kernel::Launch launch("reduce/reduce.cl", "reduce_axes");
    launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
    launch.macro("ACC_T", wide ? "long" : accumulator(src.storage));
    launch.macro("OP", static_cast<int>(attrs.op)).macro("R_AXES", reduced.used > 1 ? 3 : 1);
    launch.macro("WX", static_cast<std::int64_t>(sharing.outputs));
    launch.macro("WY", static_cast<std::int64_t>(sharing.items)).macro("Y_FAST", adjacent ? 1 : 0);
    set_epilogue(launch, node.epilogue());
    launch.src(0).dst(0).i32(outputs).i32(count);
    launch.i32(kept.size[1]).i32(kept.size[2]);
    for (const int stride : kept.stride) launch.i32(stride);
    launch.i32(reduced.size[1]).i32(reduced.size[2]);
    for (const int stride : reduced.stride) launch.i32(stride);
    launch.range({sharing.range(outputs)}, {sharing.group()});
    list.push_back({sharing.name, {launch}, {}});
  }
  return list;
}

}  // namespace

extern const Family kReduceFamily;
const Family kReduceFamily{{"reduce", /*has_epilogue=*/true, /*is_view=*/false},
                           {{kMeanCode, "MEAN"},
                            {kSumCode, "SUM"},
                            {kProdCode, "REDUCE_PROD"},
                            {kMaxCode, "REDUCE_MAX"},
                            {kMinCode, "REDUCE_MIN"},
                            {kAnyCode, "REDUCE_ANY"},
                            {kAllCode, "REDUCE_ALL"}},
                           {},
                           /*core=*/false,
                           import,
                           infer,
                           candidates};

bool is_mean_of_pixels(const ir::Graph& graph, const ir::Node& node) {
  if (node.kind != &kReduceFamily) return false;
  const auto& attrs = static_cast<const ReduceAttrs&>(*node.attrs);
  if (attrs.op != Op::kMean || !attrs.keep_dims) return false;
  const ir::Shape& src = graph.tensor(node.inputs[0]).shape;
  if (src.rank() < 3) return false;
  std::vector<bool> pixels(uz(src.rank()), true);
  pixels.front() = pixels.back() = false;
  return reduced_axes(attrs, src) == pixels;
}

}  // namespace clgpu::ops
