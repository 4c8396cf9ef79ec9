// Family of MAX_POOL_2D, AVERAGE_POOL_2D and L2_POOL_2D on NHWC tensors.
#include <algorithm>
#include <cmath>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kMaxPool = 17, kAveragePool = 1, kL2Pool = 12;

/// Windows of at least this many elements are worth a work-group each.
constexpr int kLargeWindow = 32;

struct PoolAttrs : ir::Attrs {
  int kind = 0;  ///< macro KIND of kernels/pool: 0 max, 1 average, 2 l2
  int padding = 1;
  int stride_h = 1, stride_w = 1;
  int filter_h = 1, filter_w = 1;
  std::optional<Window> rows;  ///< for a band: replaces the padding mode
  CLGPU_FIELDS(kind, padding, stride_h, stride_w, filter_h, filter_w, rows)
  static const char* words(std::string_view member) {
    if (member == "padding") return ", SAME, VALID";
    return "";
  }
};

Window rows_of(const PoolAttrs& attrs, const ir::Shape& src) {
  return attrs.rows ? *attrs.rows
                    : window(attrs.padding, src[1], attrs.filter_h, attrs.stride_h, 1);
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
  attrs.kind = node.builtin() == kMaxPool ? 0 : node.builtin() == kAveragePool ? 1 : 2;
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
  const int w = window(attrs.padding, src[2], attrs.filter_w, attrs.stride_w, 1).out;
  if (h < 1 || w < 1) throw ShapeError("the filter is larger than the input " + src.str());
  return {ir::Shape{src[0], h, w, src[3]}};
}

/// The arguments of both kernels: types, function, buffers and geometry.
void describe(const NodeContext& node, kernel::Launch& launch) {
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
  launch.i32(attrs.filter_h).i32(attrs.filter_w).i32(attrs.stride_h).i32(attrs.stride_w);
  launch.i32(rows_of(attrs, src).before);
  launch.i32(window(attrs.padding, src[2], attrs.filter_w, attrs.stride_w, 1).before);
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
  if (dst[3] % 4 == 0) found.push_back(per_pixel(node, "vec4", 4));
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

}  // namespace

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
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kRows;
  family.flops = flops;
  family.work_kind = WorkKind::kWindow;
  return family;
}();

}  // namespace clgpu::ops
