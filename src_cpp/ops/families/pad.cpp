// Family of PAD, PADV2 and MIRROR_PAD.
#include "ops/families/pad.hpp"

#include <numeric>

#include "ops/quantized/quantized.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/row_rules.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kPad = 34, kPadV2 = 60, kMirrorPad = 100;

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  PadAttrs attrs;
  const auto paddings = node.input(1).ints();
  CLGPU_REFUSE_IF(!paddings, Why::kRunTime, "the tensor of paddings");
  CLGPU_REFUSE_IF(paddings->size() != 2 * uz(node.input(0).rank()), Why::kParameter, "",
                  "there are not two paddings per axis of the input");
  for (std::size_t i = 0; i < paddings->size(); ++i) {
    const std::int64_t count = (*paddings)[i];
    if (count < 0) return wrong_value("a padding", count, "0 and more");
    (i % 2 == 0 ? attrs.before : attrs.after).push_back(static_cast<int>(count));
  }
  if (node.builtin() == kMirrorPad) {
    const auto* params = node.params<tfl::MirrorPadParams>();
    CLGPU_REFUSE_IF(params == nullptr || (params->mode != 1 && params->mode != 2), Why::kParameter,
                    "the mode", "is neither reflect nor symmetric");
    attrs.mode = params->mode == 1 ? PadAttrs::Mode::kReflect : PadAttrs::Mode::kSymmetric;
  } else if (node.has_input(2)) {
    const tfl::TensorView value = node.input(2);
    CLGPU_REFUSE_IF(value.tflite_type() != node.input(0).tflite_type(), Why::kOperands,
                    "the value and the input", "differ in type");
    CLGPU_REFUSE_IF(value.rank() > 0 && value.elements() != 1, Why::kParameter, "the value",
                    "is not a scalar");
    if (auto refusal = check_moved(node, 2)) return *refusal;
  }
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<PadAttrs>();
  ir::Shape dst = node.input(0).shape;
  for (int i = 0; i < dst.rank(); ++i) {
    const int before = attrs.before[uz(i)], after = attrs.after[uz(i)];
    if (attrs.mode != PadAttrs::Mode::kConstant) {
      const int most = dst[i] - (attrs.mode == PadAttrs::Mode::kReflect ? 1 : 0);
      if (before > most || after > most) {
        throw ShapeError("paddings (" + std::to_string(before) + ", " + std::to_string(after) +
                         ") of axis " + std::to_string(i) + " of " + dst.str() +
                         " exceed what can be mirrored");
      }
    }
    dst[i] += before + after;
  }
  return {dst};
}

/// Axes as the kernels see them: neighbours are joined, sizes are in units.
struct Axes {
  std::vector<int> src, dst, before;
  MoveUnit unit;
};

Axes axes_of(const NodeContext& node, bool wide) {
  const auto& attrs = node.attrs<PadAttrs>();
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  Axes axes{{}, {}, {}, {}};
  bool last_is_padded = false;
  for (int i = 0; i < src.shape.rank(); ++i) {
    const bool padded = attrs.before[uz(i)] != 0 || attrs.after[uz(i)] != 0;
    // An axis without padding is joined to the one before it, unless that one is mirrored: a mirror
    // reverses positions, not the elements within a position.
    const bool joins = !axes.src.empty() && !padded &&
                       (attrs.mode == PadAttrs::Mode::kConstant || !last_is_padded);
    if (joins) {
      axes.src.back() *= src.shape[i];
      axes.dst.back() *= src.shape[i];
      axes.before.back() *= src.shape[i];
    } else {
      axes.src.push_back(src.shape[i]);
      axes.dst.push_back(dst.shape[i]);
      axes.before.push_back(attrs.before[uz(i)]);
      last_is_padded = padded;
    }
  }
  std::int64_t divisor = 1;
  if (wide && !axes.src.empty() && (attrs.mode == PadAttrs::Mode::kConstant || !last_is_padded)) {
    divisor = std::gcd(std::gcd(axes.src.back(), axes.dst.back()), axes.before.back());
  }
  axes.unit = move_unit(src.storage, dst.storage, result_layout(node).common_divisor(divisor));
  if (!axes.src.empty()) {
    axes.src.back() /= axes.unit.elements;
    axes.dst.back() /= axes.unit.elements;
    axes.before.back() /= axes.unit.elements;
  }
  return axes;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<PadAttrs>();
  const ir::Tensor& dst = node.output(0);
  const bool constant = attrs.mode == PadAttrs::Mode::kConstant;
  const bool has_value = constant && node.has_input(2);

  Axes axes = axes_of(node, /*wide=*/!has_value);
  std::string value_type = axes.unit.dst_type;
  // Bits may be copied only if the value has the same storage as the tensors.
  if (has_value && node.input(2).storage != dst.storage) {
    axes.unit.src_type = cl_name(node.input(0).storage);
    axes.unit.dst_type = cl_name(dst.storage);
    value_type = cl_name(node.input(2).storage);
  }

  kernel::Launch launch(constant ? "pad/constant.cl" : "pad/mirror.cl",
                        constant ? "pad_constant" : "pad_mirror");
  launch.macro("SRC_T", axes.unit.src_type).macro("DST_T", axes.unit.dst_type);
  launch.macro("AXES", axes_variant(axes.dst.size()));
  launch.src(0);
  if (constant) {
    launch.macro("HAS_VALUE", has_value ? 1 : 0).macro("VALUE_T", value_type);
    if (has_value) launch.src(2);
  } else {
    launch.macro("SYMMETRIC", attrs.mode == PadAttrs::Mode::kSymmetric ? 1 : 0);
  }
  const std::int64_t n = dst.shape.elements() / axes.unit.elements;
  const auto d = six(axes.dst, 1), m = six(axes.src, 1), p = six(axes.before, 0);
  const std::int64_t unit_elements = dst.shape.elements() / n;
  push_result(launch, result_layout(node), static_cast<int>(unit_elements)).i32(n);
  if (constant && !has_value) launch.i32(fill_of(dst));
  for (std::size_t k = 1; k < 6; ++k) launch.i32(d[k]);
  for (const int size : m) launch.i32(size);
  for (const int before : p) launch.i32(before);
  launch.range({uz(n)}, {kElementwiseGroup});
  return {{"gather", {launch}, {}}};
}

int unit(const NodeContext&) { return 1; }

RowNeed need(const NodeContext& node, int input, RowRange rows) {
  if (input != 0) return {};
  const auto& attrs = node.attrs<PadAttrs>();
  const int before = attrs.before.at(1);
  using Beyond = RowNeed::Beyond;
  return {RowNeed::Kind::kRows,
          {rows.first - before, rows.end - before},
          attrs.mode == PadAttrs::Mode::kReflect     ? Beyond::kReflect
          : attrs.mode == PadAttrs::Mode::kSymmetric ? Beyond::kSymmetric
                                                     : Beyond::kNothing};
}

ir::AttrsPtr band_attrs(const NodeContext& node, const RowBand& band) {
  PadAttrs result = node.attrs<PadAttrs>();
  const RowRange input = band.inputs.at(0);
  result.before.at(1) += input.first - band.rows.first;
  result.after.at(1) = band.rows.count() - input.count() - result.before.at(1);
  return share(std::move(result));
}

const RowRules kRows{unit, need, band_attrs};

/// With the value that PADV2 pads with.
const IntegerForm kIntegers{{0, 2}, true, nullptr};

}  // namespace

extern const Family kPadFamily;
const Family kPadFamily = [] {
  Family family;
  family.name = "pad";
  family.attrs = ir::attrs_type<PadAttrs>();
  family.writes_slices = true;
  family.builtins = {{kPad, "PAD", 2}, {kPadV2, "PADV2", 2, 1}, {kMirrorPad, "MIRROR_PAD", 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.rows = &kRows;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
