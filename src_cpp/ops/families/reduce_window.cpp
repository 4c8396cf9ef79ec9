// Family of REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW: the elements of a window that moves along
// all axes, combined to one.
#include <algorithm>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/region.hpp"

namespace clgpu::ops {
namespace {

constexpr int kReduceWindow = 205, kStablehloReduceWindow = 198;
constexpr std::int64_t kMostPositions = 1 << 24;  // along an axis: positions stay within 31 bits

/// TfLiteStablehloReduceWindowParams.
struct StablehloParams {
  std::int64_t window[8], step[8], base[8], apart[8], padding[16];
  std::int32_t region;
};
/// TfLiteReduceWindowParams: a TfLiteReduceWindowFunction, whose numbers are those of Combine.
struct Params {
  std::int32_t function;
};

struct WindowAttrs : ir::Attrs {
  int combine = 0;                       ///< a Combine
  std::vector<int> window, step, apart;  ///< of each axis, see the kernel
  std::vector<int> low, high, base;
  CLGPU_FIELDS(combine, window, step, apart, low, high, base)
  static const char* words(std::string_view member) {
    return member == "combine" ? "replace, add, multiply, minimum, maximum, all, any" : "";
  }
};

/// A list with a number for each axis, all at least 1.
std::optional<Refusal> read_sizes(const std::int64_t* sizes, int rank, const char* what,
                                  std::vector<int>& to) {
  for (int axis = 0; axis < rank; ++axis) {
    if (sizes[axis] < 1 || sizes[axis] > kMostPositions)
      return wrong_value(what, sizes[axis], "1 to " + std::to_string(kMostPositions));
    to.push_back(static_cast<int>(sizes[axis]));
  }
  return std::nullopt;
}

std::optional<Refusal> read_inputs(const tfl::NodeView& node, WindowAttrs& attrs) {
  const auto* params = node.params<Params>();
  if (params == nullptr) return Refusal{Why::kParameter, "", "the node has no parameters"};
  const int rank = node.input(0).rank();
  if (params->function < 1 || params->function > static_cast<int>(Combine::kAny))
    return Refusal{Why::kParameter, "", "the node has no parameters"};
  attrs.combine = params->function;
  const char* const what[] = {"a size of the window", "a stride", "a dilation"};
  std::vector<int>* const to[] = {&attrs.window, &attrs.step, &attrs.apart};
  for (int i = 0; i < 3; ++i) {
    const auto sizes = node.input(2 + i).ints();
    if (!sizes) return Refusal{Why::kRunTime, "the window"};
    if (static_cast<int>(sizes->size()) != rank)
      return Refusal{Why::kParameter, "the window", "has not the axes of the input"};
    if (auto refusal = read_sizes(sizes->data(), rank, what[i], *to[i])) return refusal;
  }
  attrs.base.assign(uz(rank), 1);
  attrs.low.assign(uz(rank), 0);
  attrs.high = attrs.low;
  return std::nullopt;
}

std::optional<Refusal> read_params(const tfl::NodeView& node, WindowAttrs& attrs) {
  const auto* params = node.params<StablehloParams>();
  if (params == nullptr) return Refusal{Why::kParameter, "", "the node has no parameters"};
  const int rank = node.input(0).rank();
  const auto combine = combine_of(node, params->region);
  if (!combine || *combine == Combine::kReplace)
    return Refusal{Why::kParameter, "the region", "is not one node that combines two numbers"};
  attrs.combine = static_cast<int>(*combine);
  if (auto refusal = read_sizes(params->window, rank, "a size of the window", attrs.window))
    return refusal;
  if (auto refusal = read_sizes(params->step, rank, "a stride", attrs.step)) return refusal;
  if (auto refusal = read_sizes(params->apart, rank, "a dilation", attrs.apart)) return refusal;
  if (auto refusal = read_sizes(params->base, rank, "a dilation of the input", attrs.base))
    return refusal;
  for (int axis = 0; axis < rank; ++axis) {
    for (const int side : {0, 1}) {
      const std::int64_t edge = params->padding[2 * axis + side];
      if (edge < -kMostPositions || edge > kMostPositions) {
        return wrong_value(
            "an edge padding", edge,
            "-" + std::to_string(kMostPositions) + " to " + std::to_string(kMostPositions));
      }
      (side == 0 ? attrs.low : attrs.high).push_back(static_cast<int>(edge));
    }
  }
  return std::nullopt;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const tfl::TensorView src = node.input(0), init = node.input(1);
  CLGPU_REFUSE_TYPE(src, "input", DType::kF32, DType::kI64, DType::kI32, DType::kI16, DType::kI8,
                    DType::kU8, DType::kBool);
  CLGPU_REFUSE_RANK(src, "input", 1);
  if (auto refusal = check_moved(node, 0)) return *refusal;
  CLGPU_REFUSE_IF(init.tflite_type() != src.tflite_type(), Why::kOperands,
                  "the initial value and the input", "differ in type");
  CLGPU_REFUSE_IF(init.elements() != 1, Why::kParameter, "the initial value", "is not a scalar");
  WindowAttrs attrs;
  const bool has_inputs = node.builtin() == kReduceWindow;
  if (auto refusal = has_inputs ? read_inputs(node, attrs) : read_params(node, attrs))
    return *refusal;
  const bool is_logical = attrs.combine >= static_cast<int>(Combine::kAll);
  CLGPU_REFUSE_IF(is_logical != (src.dtype() == DType::kBool), Why::kOperands, "the function",
                  "is not one of the input's type");
  return Imported{share(attrs), {}};
}

/// Positions of the input along an axis, without its padding.
std::int64_t positions(const WindowAttrs& attrs, const ir::Shape& src, int axis) {
  return static_cast<std::int64_t>(src[axis] - 1) * attrs.base[uz(axis)] + 1;
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<WindowAttrs>();
  const ir::Shape& src = node.input(0).shape;
  std::vector<int> dims;
  for (int axis = 0; axis < src.rank(); ++axis) {
    const auto a = uz(axis);
    const std::int64_t whole = positions(attrs, src, axis) + attrs.low[a] + attrs.high[a];
    const std::int64_t reach = static_cast<std::int64_t>(attrs.window[a] - 1) * attrs.apart[a] + 1;
    if (whole < reach || whole > INT32_MAX) {
      throw ShapeError("a window of " + std::to_string(reach) + " positions along axis " +
                       std::to_string(axis) + " does not fit into " + std::to_string(whole) +
                       " positions of the input " + src.str());
    }
    dims.push_back(static_cast<int>((whole - reach) / attrs.step[a]) + 1);
  }
  return {ir::Shape(dims)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<WindowAttrs>();
  const ir::Tensor &src = node.input(0), &dst = node.output(0);
  std::vector<int> extent, strides, moved;
  std::int64_t count = 1;
  const int rank = src.shape.rank();
  for (int axis = 0; axis < rank; ++axis) {
    extent.push_back(static_cast<int>(positions(attrs, src.shape, axis)));
    strides.push_back(static_cast<int>(src.shape.elements(axis + 1, rank)));
    count *= attrs.window[uz(axis)];
    if (attrs.window[uz(axis)] > 1) moved.push_back(kMaxRank - rank + axis);
  }
  std::vector<int> table;
  for (const auto& row :
       {six(dst.shape.dims(), 1), six(attrs.window, 1), six(attrs.step, 1), six(attrs.apart, 1),
        six(attrs.low, 0), six(attrs.base, 1), six(extent, 1), six(strides, 0)}) {
    table.insert(table.end(), row.begin(), row.end());
  }
  const auto axes = static_cast<std::int64_t>(moved.size());
  if (moved.empty()) moved.push_back(0);  // memory has at least one element
  const std::int64_t n = dst.shape.elements();
  kernel::Launch launch("reduce_window/reduce_window.cl", "reduce_window_walk");
  launch.type("SRC_T", src.storage).type("INIT_T", node.input(1).storage);
  launch.type("DST_T", dst.storage).macro("OP", attrs.combine);
  launch.src(0).src(1).scratch_in(0).scratch_in(1).dst(0).i32(n).i32(axes).i32(count);
  launch.range({uz(n)}, {kElementwiseGroup});
  return {{"walk", {launch}, {kernel::table(table), kernel::table(moved)}}};
}

double flops(const NodeContext& node) {
  double count = static_cast<double>(node.output(0).shape.elements());
  for (const int size : node.attrs<WindowAttrs>().window) count *= size;
  return count;
}

}  // namespace

extern const Family kReduceWindowFamily;
const Family kReduceWindowFamily = [] {
  Family family;
  family.name = "reduce_window";
  family.attrs = ir::attrs_type<WindowAttrs>();
  family.builtins = {{kReduceWindow, "REDUCE_WINDOW", 5},
                     {kStablehloReduceWindow, "STABLEHLO_REDUCE_WINDOW", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  family.work_kind = WorkKind::kWindow;
  return family;
}();

}  // namespace clgpu::ops
