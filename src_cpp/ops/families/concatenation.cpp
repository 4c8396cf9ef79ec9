// Family of CONCATENATION and PACK: one launch per input, each writing its part of the output.
#include "ops/families/concatenation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/quantized/quantized.hpp"
#include "ops/shared/movement.hpp"
#include "ops/shared/row_rules.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kConcatenation = 2, kPack = 83;

OrRefusal<Imported> import(const tfl::NodeView& node) {
  ConcatenationAttrs attrs;
  attrs.new_axis = node.builtin() == kPack;
  std::int64_t axis = 0;
  if (attrs.new_axis) {
    const auto* params = node.params<tfl::PackParams>();
    CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
    axis = params->axis;
  } else {
    const auto* params = node.params<tfl::ConcatenationParams>();
    CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
    // The stock kernel does not support any either.
    CLGPU_REFUSE_IF(params->activation != 0, Why::kActivation, "a fused activation",
                    "is not supported here");
    axis = params->axis;
  }
  const int rank = node.input(0).rank() + (attrs.new_axis ? 1 : 0);
  const auto positive = checked_axis(axis, rank);
  if (!positive) return positive.refusal();
  attrs.axis = *positive;
  for (int i = 0; i < node.input_count(); ++i) {
    // The reference kernel requantises uint8, and requires equal parameters for int8.
    const bool requantised = !attrs.new_axis && node.input(i).dtype() == DType::kU8 &&
                             node.input(i).is_quantized() && node.output(0).is_quantized();
    if (requantised) {
      if (auto refusal = check_per_tensor(node.input(i), "input " + std::to_string(i)))
        return *refusal;
      if (auto refusal = check_per_tensor(node.output(0), "output")) return *refusal;
    } else if (auto refusal = check_moved(node, i)) {
      return *refusal;
    }
    CLGPU_REFUSE_IF(node.input(i).rank() != node.input(0).rank(), Why::kOperands, "the inputs",
                    "differ in their number of axes");
    CLGPU_REFUSE_IF(node.input(i).tflite_type() != node.input(0).tflite_type(), Why::kOperands,
                    "the inputs", "differ in type");
  }
  return Imported{share(attrs), {}};
}

/// Shape of input i with the axis of the concatenation.
ir::Shape part_shape(const NodeContext& node, int i) {
  const auto& attrs = node.attrs<ConcatenationAttrs>();
  std::vector<int> dims = node.input(i).shape.dims();
  if (attrs.new_axis) dims.insert(dims.begin() + attrs.axis, 1);
  return ir::Shape(dims);
}

ir::Shapes infer(const NodeContext& node) {
  const int axis = node.attrs<ConcatenationAttrs>().axis;
  ir::Shape dst = part_shape(node, 0);
  for (int i = 1; i < node.input_count(); ++i) {
    const ir::Shape part = part_shape(node, i);
    for (int k = 0; k < dst.rank(); ++k) {
      if (k != axis && part[k] != dst[k]) {
        throw ShapeError("inputs " + node.input(0).shape.str() + " and " +
                         node.input(i).shape.str() + " differ in more than the axis " +
                         std::to_string(axis));
      }
    }
    dst[axis] += part[axis];
  }
  return {dst};
}

/// Along columns or channels: the rows stay the same.
int row_unit(const NodeContext& node) {
  const auto& attrs = node.attrs<ConcatenationAttrs>();
  return !attrs.new_axis && attrs.axis >= 2 ? kRowwise.unit(node) : 0;
}

const RowRules kRows{row_unit, kRowwise.need, kRowwise.attrs};

}  // namespace

std::vector<Part> parts_of(const NodeContext& node) {
  const int axis = node.attrs<ConcatenationAttrs>().axis;
  const ir::Shape& dst = node.output(0).shape;
  std::vector<Part> parts(uz(node.input_count()));
  std::int64_t first = 0;
  for (int i = 0; i < node.input_count(); ++i) {
    const ir::Shape shape = part_shape(node, i);
    Part& part = parts[uz(i)];
    part = {shape.elements(0, axis), shape.elements(axis, shape.rank()), first,
            dst.elements(axis, dst.rank())};
    first += part.columns;
  }
  return parts;
}

bool is_requantized(const ir::Tensor& part, const ir::Tensor& whole) {
  return part.is_quantized() &&
         (part.scale() != whole.scale() || part.zero_point() != whole.zero_point());
}

namespace {

/// The value in the whole of each uint8 of a part: computed in float, like the reference kernel.
kernel::Scratch requantized(const ir::Tensor& part, const ir::Tensor& whole) {
  const float inverse = 1.0F / whole.scale();
  const float scale = part.scale() * inverse;
  const float bias = static_cast<float>(-part.zero_point()) * scale;
  std::vector<std::uint8_t> values;
  for (int stored = 0; stored < 256; ++stored) {
    const float value = std::round(static_cast<float>(stored) * scale + bias);
    const float result = value + static_cast<float>(whole.zero_point());
    values.push_back(static_cast<std::uint8_t>(std::clamp(result, 0.0F, 255.0F)));
  }
  return kernel::table(values);
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& dst = node.output(0);
  // Parts that were written in place need no launch.
  const int whole = dst.placement ? dst.placement->whole : node.node().outputs[0];
  const ResultLayout layout = result_layout(node);
  kernel::Candidate rows_each{kRowsEngine, {}, {}};
  const std::vector<Part> parts = parts_of(node);
  for (int i = 0; i < node.input_count(); ++i) {
    const Part& part = parts[uz(i)];
    const auto& placement = node.input(i).placement;
    if (placement && placement->whole == whole) continue;
    const bool lookup = is_requantized(node.input(i), dst);
    const std::int64_t divisor =
        lookup ? 1
               : layout.common_divisor(std::gcd(std::gcd(part.columns, part.pitch), part.first));
    const MoveUnit unit = move_unit(node.input(i).storage, dst.storage, divisor);
    const std::int64_t n = part.rows * part.columns / unit.elements;
    kernel::Launch launch("concatenation/concatenation.cl", "concatenation_rows");
    launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
    launch.macro("LOOKUP", lookup ? 1 : 0).src(i);
    if (lookup) {
      launch.scratch_in(static_cast<int>(rows_each.scratch.size()));
      rows_each.scratch.push_back(requantized(node.input(i), dst));
    }
    push_result(launch, layout, unit.elements);
    launch.i32(n).i32(part.columns / unit.elements).i32(part.pitch / unit.elements);
    launch.i32(part.first / unit.elements).range({uz(n)}, {kElementwiseGroup});
    rows_each.launches.push_back(launch);
  }
  if (rows_each.launches.empty()) rows_each.name = "in_place";
  return {rows_each};
}

const IntegerForm kIntegers{{}, true, nullptr};

}  // namespace

const Family kConcatenationFamily = [] {
  Family family;
  family.name = "concatenation";
  family.attrs = ir::attrs_type<ConcatenationAttrs>();
  family.writes_slices = true;
  family.builtins = {{kConcatenation, "CONCATENATION", 1, kAnyNumber},
                     {kPack, "PACK", 1, kAnyNumber}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.integers = &kIntegers;
  family.rows = &kRows;
  family.flops = no_flops;
  return family;
}();

bool joins_rows(const ir::Node& node) {
  if (node.kind != &kConcatenationFamily) return false;
  const auto& attrs = static_cast<const ConcatenationAttrs&>(*node.attrs);
  return attrs.axis == 1 && !attrs.new_axis;
}

namespace {

ir::Node node_of(const char* op, const std::vector<int>& parts, int whole,
                 const ConcatenationAttrs& attrs) {
  ir::Node node;
  node.kind = &kConcatenationFamily;
  node.op = op;
  node.inputs = parts;
  node.outputs = {whole};
  node.attrs = share(attrs);
  return node;
}

}  // namespace

ir::Node concatenation_of(const std::vector<int>& parts, int whole, int axis) {
  ConcatenationAttrs attrs;
  attrs.axis = axis;
  return node_of("CONCATENATION", parts, whole, attrs);
}

ir::Node stack_of(const std::vector<int>& parts, int whole) {
  ConcatenationAttrs attrs;
  attrs.new_axis = true;
  return node_of("PACK", parts, whole, attrs);
}

}  // namespace clgpu::ops
