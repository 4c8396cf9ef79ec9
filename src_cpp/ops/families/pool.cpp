// Family of MAX_POOL_2D, AVERAGE_POOL_2D and L2_POOL_2D on NHWC tensors.
#include "ops/families/pool.hpp"

#include <algorithm>
#include <cmath>

#include "ops/quantized/quantized.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kMaxPool = 17, kAveragePool = 1, kL2Pool = 12;

/// Windows of at least this many elements are worth a work-group each.
constexpr int kLargeWindow = 32;

Window rows_of(const PoolAttrs& attrs, const ir::Shape& src) {
  if (attrs.rows) return *attrs.rows;
  const int padded = src[1] + attrs.extra_top + attrs.extra_bottom;
  Window rows = window(attrs.padding, padded, attrs.filter_h, attrs.stride_h, 1);
  rows.before += attrs.extra_top;
  return rows;
}

Window columns_of(const PoolAttrs& attrs, const ir::Shape& src) {
  const int padded = src[2] + attrs.extra_left + attrs.extra_right;
  Window columns = window(attrs.padding, padded, attrs.filter_w, attrs.stride_w, 1);
  columns.before += attrs.extra_left;
  return columns;
}

/// The reference kernels never rescale: they are correct only if input and output have the same
/// scale.
std::optional<Refusal> check_quantized(const tfl::NodeView& node) {
  const tfl::TensorView src = node.input(0), dst = node.output(0);
  if (auto refusal = check_type(src, "input", {DType::kI8, DType::kU8, DType::kI16}))
    return refusal;
  if (auto refusal = check_type(dst, "output", {src.dtype()})) return refusal;
  if (auto refusal = check_per_tensor(src, "input")) return refusal;
  if (auto refusal = check_per_tensor(dst, "output")) return refusal;
  constexpr float kSame = 1e-6F;  // of TFLite's own check
  if (std::abs(src.scale() - dst.scale()) > kSame || src.zero_point() != dst.zero_point())
    return Refusal{Why::kRescaling, "its input and output", "differ in scale or zero point"};
  if (node.builtin() == kL2Pool)
    return Refusal{Why::kIntegers, "", "L2_POOL_2D of integers is not defined"};
  return std::nullopt;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const bool quantized = node.input(0).is_quantized() || node.output(0).is_quantized();
  if (quantized) {
    if (auto refusal = check_quantized(node)) return *refusal;
  } else {
    CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  }
  CLGPU_REFUSE_RANK(node.input(0), "input", 4, 4);
  const auto* params = node.params<tfl::PoolParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  if (params->padding != 1 && params->padding != 2)
    return wrong_value("the padding", params->padding, kPaddings);
  CLGPU_REFUSE_IF(params->stride_height < 1 || params->stride_width < 1 ||
                      params->filter_height < 1 || params->filter_width < 1,
                  Why::kParameter, "a stride or filter size", "is below 1");
  PoolAttrs attrs;
  attrs.kind = node.builtin() == kMaxPool       ? PoolAttrs::kMax
               : node.builtin() == kAveragePool ? PoolAttrs::kAverage
                                                : PoolAttrs::kRootMeanSquare;
  attrs.padding = params->padding;
  attrs.stride_h = params->stride_height;
  attrs.stride_w = params->stride_width;
  attrs.filter_h = params->filter_height;
  attrs.filter_w = params->filter_width;
  auto epilogue = fused_activation(params->activation);
  if (!epilogue) return epilogue.refusal();
  if (quantized) {
    if (auto refusal = check_clamping(*epilogue)) return *refusal;
  }
  return Imported{share(attrs), *epilogue};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<PoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const int h = rows_of(attrs, src).out;
  const int w = columns_of(attrs, src).out;
  if (h < 1 || w < 1) throw ShapeError("the filter is larger than the input " + src.str());
  return {ir::Shape{src[0], h, w, src[3]}};
}

/// The arguments of all kernels: types, function, buffers and geometry; the sizes of windows as
/// macros if they are `fixed`.
void describe(const NodeContext& node, kernel::Launch& launch, bool fixed = false) {
  const auto& attrs = node.attrs<PoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const ir::Shape& dst = node.output(0).shape;
  launch.type("SRC_T", node.input(0).storage).type("DST_T", node.output(0).storage);
  const ir::Tensor& result = node.output(0);
  const bool quantized = result.is_quantized();
  launch.macro("KIND", attrs.kind).macro("QUANTIZED", quantized ? 1 : 0);
  set_epilogue(launch, quantized ? ir::Epilogue{} : node.epilogue());
  push_result(launch.src(0), result_layout(node));
  if (quantized) {
    const IntRange range = activation_range(node.epilogue().activation, result);
    launch.i32(range.low).i32(range.high);
  }
  launch.i32(dst[0]).i32(src[1]).i32(src[2]).i32(dst[1]).i32(dst[2]).i32(dst[3]);
  if (fixed) {
    launch.macro("FILTER_H", attrs.filter_h).macro("FILTER_W", attrs.filter_w);
    launch.macro("STRIDE_H", attrs.stride_h).macro("STRIDE_W", attrs.stride_w);
  } else {
    launch.i32(attrs.filter_h).i32(attrs.filter_w).i32(attrs.stride_h).i32(attrs.stride_w);
  }
  launch.i32(rows_of(attrs, src).before);
  launch.i32(columns_of(attrs, src).before);
}

/// One work-item per `width` channels of a pixel.
kernel::Candidate per_pixel(const NodeContext& node, const char* name, int width) {
  kernel::Launch launch("pool/window.cl", "pool_window");
  describe(node, launch);
  launch.macro("WIDTH", width);
  launch.range({uz(node.output(0).shape.elements() / width)}, {kElementwiseGroup});
  const auto form = width == 1 ? kernel::Form::kReference : kernel::Form::kTuned;
  return kernel::of_form(form, {name, {launch}, {}});
}

/// Whether neighbouring windows share elements that a work-item can keep in registers.
bool windows_overlap(const PoolAttrs& attrs) {
  constexpr int kMost = 5;
  return (attrs.filter_h > attrs.stride_h || attrs.filter_w > attrs.stride_w) &&
         std::max({attrs.filter_h, attrs.filter_w, attrs.stride_h, attrs.stride_w}) <= kMost;
}

/// One work-item per 2 x 2 pixels of four channels.
kernel::Candidate blocked(const NodeContext& node) {
  constexpr int kWidth = 4, kSide = 2;
  const ir::Shape& dst = node.output(0).shape;
  kernel::Launch launch("pool/blocked.cl", "pool_blocked");
  describe(node, launch, true);
  launch.macro("WIDTH", kWidth).macro("PX", kSide).macro("PY", kSide);
  const std::int64_t blocks = dst[0] * ceil_div(dst[1], kSide) * ceil_div(dst[2], kSide);
  launch.range({uz(blocks * dst[3] / kWidth)}, {kElementwiseGroup});
  return {"blocked_2x2", {launch}, {}};
}

/// One work-group per pixel and block of channels.
kernel::Candidate tree(const NodeContext& node) {
  const ir::Shape& dst = node.output(0).shape;
  const int lanes = dst[3] >= 32 ? 32 : 4;
  const std::size_t rows = uz(256 / lanes);
  kernel::Launch launch("pool/tree.cl", "pool_tree");
  describe(node, launch);
  launch.macro("LANES", lanes).macro("ROWS", static_cast<std::int64_t>(rows));
  launch.range({uz(round_up(dst[3], lanes)), uz(dst.elements(0, 3)) * rows}, {uz(lanes), rows});
  return {"tree", {launch}, {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<PoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const ir::Shape& dst = node.output(0).shape;
  std::vector<kernel::Candidate> found;
  const bool quantized = node.output(0).is_quantized();
  if (quantized && device.is_cpu() && dst[3] % 16 == 0)
    found.push_back(per_pixel(node, "vec16", 16));
  const bool blocks = dst[3] % 4 == 0 && windows_overlap(attrs);
  // Measured on an H200: with fewer pixels, too few work-items remain to hide that they wait.
  constexpr std::int64_t kItemsOfUnit = 400;
  const bool blocks_first = !device.is_cpu() && !device.is_mobile() &&
                            dst.elements() / 4 > kItemsOfUnit * device.compute_units;
  if (blocks && blocks_first) found.push_back(blocked(node));
  if (dst[3] % 4 == 0) found.push_back(per_pixel(node, "vec4", 4));
  if (blocks && !blocks_first) found.push_back(blocked(node));
  found.push_back(per_pixel(node, "naive", 1));

  const int elements = std::min(attrs.filter_h, src[1]) * std::min(attrs.filter_w, src[2]);
  if (elements >= kLargeWindow && device.max_work_group_size >= 256) {
    // Few pixels do not fill a GPU. A CPU has few cores, and barriers only add cost there.
    const std::int64_t least = device.is_mobile() ? 64 : 64 * 32;
    const bool first = !device.is_cpu() && dst.elements() / 4 < least * device.compute_units;
    found.insert(first ? found.begin() : found.end(), tree(node));
  }
  return found;
}

int unit(const NodeContext&) { return 1; }

RowNeed need(const NodeContext& node, int, RowRange rows) {
  const auto& attrs = node.attrs<PoolAttrs>();
  const int before = rows_of(attrs, node.input(0).shape).before;
  return {RowNeed::Kind::kRows,
          {rows.first * attrs.stride_h - before,
           (rows.end - 1) * attrs.stride_h - before + attrs.filter_h}};
}

ir::AttrsPtr band_attrs(const NodeContext& node, const RowBand& band) {
  PoolAttrs result = node.attrs<PoolAttrs>();
  const int before = rows_of(result, node.input(0).shape).before;
  result.rows = Window{band.rows.count(),
                       before + band.inputs.at(0).first - band.rows.first * result.stride_h};
  return share(result);
}

const RowRules kRows{unit, need, band_attrs};

double flops(const NodeContext& node) {
  const auto& attrs = node.attrs<PoolAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const int covered = std::min(attrs.filter_h, src[1]) * std::min(attrs.filter_w, src[2]);
  return static_cast<double>(node.output(0).shape.elements() * covered);
}

std::string adapt(const ir::Graph& graph, ir::Node& node) {
  const auto& attrs = static_cast<const PoolAttrs&>(*node.attrs);
  if (attrs.kind == PoolAttrs::kRootMeanSquare) return "L2_POOL_2D of integers is not defined";
  return clamping_problem(graph, node);
}

const IntegerForm kIntegers{{0}, true, adapt};

}  // namespace

ir::AttrsPtr with_border(const PoolAttrs& attrs, const Border& border) {
  const bool adds = border.top >= 0 && border.bottom >= 0 && border.left >= 0 && border.right >= 0;
  if (attrs.kind != PoolAttrs::kMax || attrs.padding != kPaddingValid || attrs.rows || !adds ||
      border.reflect)
    return nullptr;
  PoolAttrs result = attrs;
  result.extra_top += border.top;
  result.extra_bottom += border.bottom;
  result.extra_left += border.left;
  result.extra_right += border.right;
  const bool touches = std::max(result.extra_top, result.extra_bottom) < attrs.filter_h &&
                       std::max(result.extra_left, result.extra_right) < attrs.filter_w;
  return touches ? share(result) : nullptr;
}

bool averages_all_pixels(const ir::Graph& graph, const ir::Node& node) {
  const auto* attrs = dynamic_cast<const PoolAttrs*>(node.attrs.get());
  if (attrs == nullptr || attrs->kind != PoolAttrs::kAverage || attrs->rows) return false;
  const ir::Shape& src = graph.tensor(node.inputs[0]).shape;
  const ir::Shape& dst = graph.tensor(node.outputs[0]).shape;
  if (src.rank() != 4 || dst[1] != 1 || dst[2] != 1) return false;
  const Window rows = rows_of(*attrs, src), columns = columns_of(*attrs, src);
  return attrs->filter_h - rows.before >= src[1] && attrs->filter_w - columns.before >= src[2];
}

extern const Family kPoolFamily;
const Family kPoolFamily = [] {
  Family family;
  family.name = "pool";
  family.attrs = ir::attrs_type<PoolAttrs>();
  family.has_epilogue = true;
  family.writes_slices = true;
  family.builtins = {
      {kMaxPool, "MAX_POOL_2D"}, {kAveragePool, "AVERAGE_POOL_2D"}, {kL2Pool, "L2_POOL_2D"}};
  family.import = import;
  family.types = {"DST_T", {"SRC_T"}};
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.rows = &kRows;
  family.flops = flops;
  family.work_kind = WorkKind::kWindow;
  return family;
}();

}  // namespace clgpu::ops
