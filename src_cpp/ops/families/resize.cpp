// Family of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.
#include <cmath>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

constexpr int kResizeBilinear = 23, kResizeNearest = 97;

struct ResizeAttrs : ir::Attrs {
  bool bilinear = true;
  int height = 0, width = 0;        ///< of the output
  bool align_corners = false;       ///< the centres of the outermost pixels coincide
  bool half_pixel_centers = false;  ///< a pixel is in the middle of its cell
  /// For a band: its rows of the result, and the input's first row and height within the whole.
  std::optional<RowRange> rows;
  int src_first = 0, src_height = 0;
  CLGPU_FIELDS(bilinear, height, width, align_corners, half_pixel_centers, rows, src_first,
               src_height)
};

/// Height of the whole input.
int src_height(const ResizeAttrs& attrs, const ir::Shape& src) {
  return attrs.rows ? attrs.src_height : src[1];
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  ResizeAttrs attrs;
  attrs.bilinear = node.builtin() == kResizeBilinear;
  if (attrs.bilinear) {
    CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32, DType::kF16, DType::kBF16, DType::kI8,
                      DType::kU8, DType::kI16);
  }
  CLGPU_REFUSE_RANK(node.input(0), "input", 4, 4);
  const auto size = node.input(1).ints();
  CLGPU_REFUSE_IF(!size, Why::kRunTime, "the new size");
  CLGPU_REFUSE_IF(size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1, Why::kParameter,
                  "the new size", "is not a positive height and width");
  const auto* params = node.params<tfl::ResizeParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  attrs.height = static_cast<int>((*size)[0]);
  attrs.width = static_cast<int>((*size)[1]);
  attrs.align_corners = params->align_corners;
  attrs.half_pixel_centers = params->half_pixel_centers;
  CLGPU_REFUSE_IF(attrs.bilinear && attrs.align_corners && attrs.half_pixel_centers,
                  Why::kParameter, "align_corners and half_pixel_centers", "exclude each other");
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<ResizeAttrs>();
  const ir::Shape& src = node.input(0).shape;
  const int height = attrs.rows ? attrs.rows->count() : attrs.height;
  return {ir::Shape{src[0], height, attrs.width, src[3]}};
}

/// Pixels of the source per pixel of the result, rounded as the reference does: in float.
float scale(const ResizeAttrs& attrs, int src, int dst) {
  if (attrs.align_corners && dst > 1) {
    return static_cast<float>(src - 1) / static_cast<float>(dst - 1);
  }
  return static_cast<float>(src) / static_cast<float>(dst);
}

/// int8 and int16 are interpolated in integers, with positions in steps of 1/1024 pixel; uint8 in
/// float.
bool is_fixed_point(const ir::Tensor& src) {
  return src.dtype == DType::kI8 || src.dtype == DType::kI16;
}

/// The scale in steps.
int fixed_scale(const ResizeAttrs& attrs, int src, int dst) {
  const int corners = attrs.align_corners && dst > 1 ? 1 : 0;
  return ((src - corners) * 1024 + (dst - corners) / 2) / (dst - corners);
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<ResizeAttrs>();
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const int channels = src.shape[3];
  const bool fixed = attrs.bilinear && is_fixed_point(src);

  kernel::Launch launch(attrs.bilinear ? "resize/bilinear.cl" : "resize/nearest.cl",
                        attrs.bilinear ? "resize_bilinear" : "resize_nearest");
  const ResultLayout layout = result_layout(node);
  int width = 1;  // channels of one work-item
  if (attrs.bilinear) {
    width = channels % 4 == 0 && layout.aligned(4) ? 4 : 1;
    launch.type("SRC_T", src.storage).type("DST_T", dst.storage).macro("VEC", width);
    launch.macro("FIXED_POINT", fixed ? 1 : 0);
    launch.macro("HALF_UP", src.dtype == DType::kU8 ? 1 : 0);
    launch.type("SUM_T", src.dtype == DType::kI16 ? DType::kI64 : DType::kI32);
  } else {
    const MoveUnit unit = move_unit(src.storage, dst.storage, layout.common_divisor(channels));
    width = unit.elements;
    launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
    launch.macro("ROUND", attrs.align_corners ? 1 : 0);
  }
  // The bilinear kernel has a dimension for rows: computing the positions costs it more than
  // reading.
  const std::int64_t n = (attrs.bilinear ? dst.shape.elements(2, 4) : dst.shape.elements()) / width;
  push_result(launch.src(0), layout, attrs.bilinear ? 1 : width);
  launch.i32(n).i32(channels / width);
  launch.i32(dst.shape[1]).i32(attrs.width).i32(src.shape[1]).i32(src.shape[2]);
  launch.i32(attrs.rows ? attrs.rows->first : 0).i32(attrs.src_first);
  const int height = src_height(attrs, src.shape);
  if (fixed) {
    launch.i32(fixed_scale(attrs, height, attrs.height));
    launch.i32(fixed_scale(attrs, src.shape[2], attrs.width));
    launch.i32(attrs.half_pixel_centers ? 1 : 0).i32(height);
  } else {
    launch.f32(scale(attrs, height, attrs.height)).f32(scale(attrs, src.shape[2], attrs.width));
    launch.f32(attrs.half_pixel_centers ? 0.5F : 0.0F);
  }
  if (attrs.bilinear) {
    launch.range({uz(n), uz(dst.shape[1]), uz(dst.shape[0])}, {kElementwiseGroup});
  } else {
    launch.range({uz(n)}, {kElementwiseGroup});
  }
  return {{attrs.bilinear ? "bilinear" : "nearest", {launch}, {}}};
}

int unit(const NodeContext&) { return 1; }

// As the kernels compute it.
RowNeed need(const NodeContext& node, int input, RowRange rows) {
  if (input != 0) return {};
  const auto& attrs = node.attrs<ResizeAttrs>();
  const int height = src_height(attrs, node.input(0).shape);
  if (attrs.bilinear && is_fixed_point(node.input(0))) {
    const int fixed = fixed_scale(attrs, height, attrs.height);
    const int half = attrs.half_pixel_centers ? fixed / 2 - 512 : 0;
    return {RowNeed::Kind::kRows,
            {floor_of(rows.first * fixed + half, 1024),
             ceil_of((rows.end - 1) * fixed + half, 1024) + 1}};
  }
  const float step = scale(attrs, height, attrs.height);
  const float shift = attrs.half_pixel_centers ? 0.5F : 0.0F;
  const auto place = [&](int row) { return (static_cast<float>(row) + shift) * step; };
  const float first = place(rows.first), last = place(rows.end - 1);
  if (attrs.bilinear) {
    return {RowNeed::Kind::kRows,
            {static_cast<int>(std::floor(first - shift)),
             static_cast<int>(std::ceil(last - shift)) + 1}};
  }
  const auto nearest = [&](float y) { return attrs.align_corners ? std::round(y) : std::floor(y); };
  return {RowNeed::Kind::kRows,
          {static_cast<int>(nearest(first)), static_cast<int>(nearest(last)) + 1}};
}

ir::AttrsPtr band_attrs(const NodeContext& node, const RowBand& band) {
  ResizeAttrs result = node.attrs<ResizeAttrs>();
  result.src_height = src_height(result, node.input(0).shape);
  result.src_first = band.inputs.at(0).first;
  result.rows = band.rows;
  return share(result);
}

const RowRules kRows{unit, need, band_attrs};

// Three interpolations between two values.
double flops(const NodeContext& node) {
  if (!node.attrs<ResizeAttrs>().bilinear) return 0;
  return 9.0 * static_cast<double>(node.output(0).shape.elements());
}

// The other kernel moves words of several elements.
bool is_bilinear(const ir::Node& node) {
  return static_cast<const ResizeAttrs&>(*node.attrs).bilinear;
}

}  // namespace

extern const Family kResizeFamily;
const Family kResizeFamily = [] {
  Family family;
  family.name = "resize";
  family.attrs = ir::attrs_type<ResizeAttrs>();
  family.writes_slices = true;
  family.builtins = {{kResizeBilinear, "RESIZE_BILINEAR", 2},
                     {kResizeNearest, "RESIZE_NEAREST_NEIGHBOR", 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.types = {"DST_T", {"SRC_T"}, is_bilinear};
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kMovedIntegers;
  family.rows = &kRows;
  family.flops = flops;
  family.work_kind = WorkKind::kWindow;
  return family;
}();

}  // namespace clgpu::ops
