// Family of MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_ANY and REDUCE_ALL.
#include "ops/families/reduce.hpp"

#include <algorithm>
#include <cmath>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kMeanCode = 40, kSumCode = 74, kProdCode = 81, kMaxCode = 82, kMinCode = 89,
              kAnyCode = 91, kAllCode = 140;

/// Value of the macro OP.
enum class Op : int { kSum = 0, kMean = 1, kMax = 2, kMin = 3, kProd = 4 };

struct ReduceAttrs : ir::Attrs {
  Op op = Op::kSum;
  std::vector<std::int64_t> axes;  ///< as in the model: unordered, possibly negative or repeated
  bool keep_dims = false;
  CLGPU_FIELDS(op, axes, keep_dims)
  static const char* words(std::string_view member) {
    if (member == "op") return "sum, mean, max, min, prod";
    return "";
  }
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

/// What the reference kernels compute on quantised integers. That of SUM takes them all for uint8,
/// which the default kernels do not: signed ones are summed as it sums uint8.
std::optional<Refusal> check_quantized(const tfl::NodeView& node, Op op) {
  const tfl::TensorView src = node.input(0), dst = node.output(0);
  if (auto refusal = check_per_tensor(src, "input")) return refusal;
  if (auto refusal = check_per_tensor(dst, "output")) return refusal;
  if (op == Op::kProd) {
    if (auto refusal = check_type(src, "input", {DType::kI8, DType::kI16})) return refusal;
    // The reference kernel shifts by 15 bits less the exponent of this.
    if (src.scale() / std::min(dst.scale(), 1.0F) >= 8192.0F)
      return Refusal{Why::kQuantization, "the scale of its input",
                     "is too large for 64-bit products"};
  } else if (auto refusal = check_type(src, "input", {DType::kI8, DType::kU8, DType::kI16})) {
    return refusal;
  } else if (op != Op::kMean && op != Op::kSum &&
             (std::abs(src.scale() - dst.scale()) > 0.0F || src.zero_point() != dst.zero_point())) {
    return Refusal{Why::kRescaling, "its input and output", "differ in scale or zero point"};
  }
  return check_type(dst, "output", {src.dtype()});
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView src = node.input(0);
  if (node.builtin() == kAnyCode || node.builtin() == kAllCode) {
    CLGPU_REFUSE_TYPE(src, "input", DType::kBool);
  } else if (src.is_quantized() || node.output(0).is_quantized()) {
    if (auto refusal = check_quantized(node, op_of(node.builtin()))) return *refusal;
  } else {
    CLGPU_REFUSE_TYPE(src, "input", DType::kF32, DType::kI32, DType::kI64);
  }
  const auto* params = node.params<tfl::ReducerParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const auto axes = node.input(1).ints();
  CLGPU_REFUSE_IF(!axes, Why::kRunTime, "the tensor of axes");
  // The runtime ignores the axes of a scalar.
  for (const std::int64_t axis : *axes) {
    const auto checked = checked_axis(axis, src.rank());
    if (src.rank() > 0 && !checked) return checked.refusal();
  }
  ReduceAttrs attrs;
  attrs.op = op_of(node.builtin());
  attrs.axes = *axes;
  attrs.keep_dims = params->keep_dims;
  return Imported{share(attrs), {}};
}

/// The axes of a shape that are reduced.
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

/// Axes of one kind, neighbours merged, aligned to the right; missing ones have size 1.
struct Axes {
  static constexpr int kMost = 3;  // six axes alternate between two kinds
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

/// The elements of src as kept and reduced axes.
struct Split {
  Axes kept, reduced;
  bool adjacent = false;  ///< reduced elements are adjacent in memory
};

Split split(const NodeContext& node) {
  const ir::Shape& src = node.input(0).shape;
  const std::vector<bool> is_reduced = reduced_axes(node.attrs<ReduceAttrs>(), src);
  const std::vector<int> strides = src.strides();
  Split result;
  int sort_before = -1;  // 0 kept, 1 reduced
  for (int axis = 0; axis < src.rank(); ++axis) {
    const int size = src[axis], stride = strides[uz(axis)];
    if (size == 1) continue;
    const int sort = is_reduced[uz(axis)] ? 1 : 0;
    Axes& axes = sort == 1 ? result.reduced : result.kept;
    if (sort == sort_before) {
      axes.widen(size, stride);
    } else {
      axes.add(size, stride);
    }
    sort_before = sort;
  }
  result.adjacent = sort_before == 1;
  return result;
}

void push_axes(kernel::Launch& launch, const Split& split) {
  launch.i32(split.kept.elements()).i32(split.reduced.elements());
  launch.i32(split.kept.size[1]).i32(split.kept.size[2]);
  for (const int stride : split.kept.stride) launch.i32(stride);
  launch.i32(split.reduced.size[1]).i32(split.reduced.size[2]);
  for (const int stride : split.reduced.stride) launch.i32(stride);
}

/// The reference kernel's factor of a sum, or of a mean of `count` elements, truncated instead of
/// rounded.
Multiplier sum_multiplier(const NodeContext& node, std::int64_t count) {
  const double scale = static_cast<double>(node.input(0).scale());
  Multiplier m = quantize_multiplier(scale / static_cast<double>(node.output(0).scale()));
  if (node.attrs<ReduceAttrs>().op != Op::kMean || count == 0) return m;
  int bits = 0;
  while (bits < 32 && count >> (bits + 1) != 0) ++bits;
  bits = std::min(bits, 31 + m.shift);
  m.value = static_cast<std::int32_t>((std::int64_t{m.value} << bits) / count);
  m.shift -= bits;
  return m;
}

void push_requantization(kernel::Launch& launch, const ir::Tensor& dst, Multiplier m) {
  const IntRange range = range_of(dst.dtype);
  launch.i32(m.value).i32(m.shift).i32(dst.zero_point()).i32(range.low).i32(range.high);
}

kernel::Candidate quantized_product(const NodeContext& node, const Split& split) {
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  kernel::Launch launch("reduce/quantized_product.cl", "reduce_quantized_product");
  launch.type("SRC_T", src.storage).type("DST_T", dst.storage);
  launch.src(0).dst(0).i32(src.zero_point());
  const double root =
      1.0 / static_cast<double>(std::max<std::int64_t>(split.reduced.elements(), 1));
  const double scale = static_cast<double>(src.scale());
  push_requantization(
      launch, dst, quantize_multiplier(scale / std::pow(static_cast<double>(dst.scale()), root)));
  push_axes(launch, split);
  launch.range({uz(split.kept.elements())}, {kElementwiseGroup});
  return kernel::of_form(kernel::Form::kReference, {"naive", {launch}, {}});
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const Op op = node.attrs<ReduceAttrs>().op;
  const ir::Tensor& src = node.input(0);
  const Split axes = split(node);
  if (src.is_quantized() && op == Op::kProd) return {quantized_product(node, axes)};
  const std::int64_t outputs = axes.kept.elements(), count = axes.reduced.elements();
  // Integer means add up in 64 bits, as in the runtime; those of quantised integers do not.
  const bool wide = op == Op::kMean && !is_float(src.storage) && !src.is_quantized();
  const bool rescaled = src.is_quantized() && (op == Op::kMean || op == Op::kSum);

  std::vector<kernel::Candidate> list;
  for (const Sharing& sharing : sharings(outputs, count, axes.adjacent, device)) {
    kernel::Launch launch("reduce/reduce.cl", "reduce_axes");
    launch.slim = true;
    launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
    launch.macro("ACC_T", wide ? "long" : accumulator(src.storage));
    launch.macro("OP", static_cast<int>(rescaled ? Op::kSum : op));
    launch.macro("QUANTIZED", rescaled ? 1 : 0).macro("R_AXES", axes.reduced.used > 1 ? 3 : 1);
    launch.macro("WX", static_cast<std::int64_t>(sharing.outputs));
    launch.macro("WY", static_cast<std::int64_t>(sharing.items));
    launch.macro("Y_FAST", axes.adjacent ? 1 : 0);
    set_epilogue(launch, node.epilogue());
    launch.src(0).dst(0);
    if (rescaled) {
      launch.i32(static_cast<std::int32_t>(-src.zero_point() * count));
      push_requantization(launch, node.output(0), sum_multiplier(node, count));
    }
    push_axes(launch, axes);
    launch.range({sharing.range(outputs)}, {sharing.group()});
    list.push_back(kernel::of_form(sharing.form, {sharing.name, {launch}, {}}));
  }
  return list;
}

double flops(const NodeContext& node) {
  return static_cast<double>(node.input(0).shape.elements());
}

std::string adapt(const ir::Graph&, ir::Node& node) {
  if (static_cast<const ReduceAttrs&>(*node.attrs).op == Op::kMean) return {};
  return "of the reductions, MEAN alone has a form of int8 here";
}

const IntegerForm kIntegers{{0}, false, adapt};

}  // namespace

extern const Family kReduceFamily;
const Family kReduceFamily = [] {
  Family family;
  family.name = "reduce";
  family.attrs = ir::attrs_type<ReduceAttrs>();
  family.has_epilogue = true;
  family.builtins = {{kMeanCode, "MEAN", 2},        {kSumCode, "SUM", 2},
                     {kProdCode, "REDUCE_PROD", 2}, {kMaxCode, "REDUCE_MAX", 2},
                     {kMinCode, "REDUCE_MIN", 2},   {kAnyCode, "REDUCE_ANY", 2},
                     {kAllCode, "REDUCE_ALL", 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.types = {"DST_T", {"SRC_T"}};
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.flops = flops;
  return family;
}();

bool is_mean_of_pixels(const ir::Graph& graph, const ir::Node& node, bool any_rank) {
  if (node.kind != &kReduceFamily) return false;
  const auto& attrs = static_cast<const ReduceAttrs&>(*node.attrs);
  if (attrs.op != Op::kMean || (!attrs.keep_dims && !any_rank)) return false;
  const ir::Shape& src = graph.tensor(node.inputs[0]).shape;
  if (src.rank() < 3) return false;
  std::vector<bool> pixels(uz(src.rank()), true);
  pixels.front() = pixels.back() = false;
  return reduced_axes(attrs, src) == pixels;
}

RowReduction row_reduction(const ir::Graph& graph, const ir::Node& node) {
  if (node.kind != &kReduceFamily) return RowReduction::kNone;
  const auto& attrs = static_cast<const ReduceAttrs&>(*node.attrs);
  if (attrs.op != Op::kMean && attrs.op != Op::kSum) return RowReduction::kNone;
  const ir::Shape& src = graph.tensor(node.inputs[0]).shape;
  if (src.rank() == 0) return RowReduction::kNone;
  std::vector<bool> row(uz(src.rank()), false);
  row.back() = true;
  if (reduced_axes(attrs, src) != row) return RowReduction::kNone;
  return attrs.op == Op::kMean ? RowReduction::kMean : RowReduction::kSum;
}

int summed_axis(const ir::Graph& graph, const ir::Node& node) {
  if (node.kind != &kReduceFamily || graph.tensor(node.outputs[0]).dtype != DType::kF32) return -1;
  const auto& attrs = static_cast<const ReduceAttrs&>(*node.attrs);
  const std::vector<bool> axes = reduced_axes(attrs, graph.tensor(node.inputs[0]).shape);
  if (attrs.op != Op::kSum || std::count(axes.begin(), axes.end(), true) != 1) return -1;
  return static_cast<int>(std::find(axes.begin(), axes.end(), true) - axes.begin());
}

bool is_mean_of_row(const ir::Graph& graph, const ir::Node& node) {
  return row_reduction(graph, node) == RowReduction::kMean &&
         static_cast<const ReduceAttrs&>(*node.attrs).keep_dims;
}

}  // namespace clgpu::ops
