// Family of DILATE and STABLEHLO_PAD: a value between the elements of a tensor and around them.
#include <string>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kDilate = 203, kStablehloPad = 195;
constexpr int kMostPadding = 1 << 24;  // along an axis: positions stay within 31 bits

/// TfLiteStablehloPadParams: of each axis.
struct StablehloPadParams {
  std::int64_t low[8], high[8], interior[8];
};

struct DilateAttrs : ir::Attrs {
  // Of each axis: positions before the first element and behind the last one, below 0 if elements
  // are cut off, and between neighbours.
  std::vector<int> low, high, interior;
  CLGPU_FIELDS(low, high, interior)
};

/// The input with the value of the new positions.
int value_slot(const ir::Node& node) { return static_cast<int>(node.inputs.size()) - 1; }

OrRefusal<DilateAttrs> dilations(const tfl::NodeView& node) {
  const auto steps = node.input(1).ints();
  CLGPU_REFUSE_IF(!steps, Why::kRunTime, "the tensor of dilations");
  CLGPU_REFUSE_IF(steps->size() != uz(node.input(0).rank()), Why::kParameter, "",
                  "there is not one dilation per axis of the input");
  DilateAttrs attrs;
  for (const std::int64_t step : *steps) {
    if (step < 1 || step > kMostPadding)
      return wrong_value("a dilation", step, "1 to " + std::to_string(kMostPadding));
    attrs.interior.push_back(static_cast<int>(step) - 1);
  }
  attrs.low.assign(attrs.interior.size(), 0);
  attrs.high = attrs.low;
  return attrs;
}

OrRefusal<DilateAttrs> paddings(const tfl::NodeView& node) {
  const auto* const params = node.params<StablehloPadParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  DilateAttrs attrs;
  for (int axis = 0; axis < node.input(0).rank(); ++axis) {
    for (const std::int64_t edge : {params->low[axis], params->high[axis]}) {
      if (edge < -kMostPadding || edge > kMostPadding) {
        return wrong_value(
            "an edge padding", edge,
            "-" + std::to_string(kMostPadding) + " to " + std::to_string(kMostPadding));
      }
    }
    const std::int64_t interior = params->interior[axis];
    if (interior < 0 || interior >= kMostPadding) {
      return wrong_value("an interior padding", interior,
                         "0 to " + std::to_string(kMostPadding - 1));
    }
    attrs.low.push_back(static_cast<int>(params->low[axis]));
    attrs.high.push_back(static_cast<int>(params->high[axis]));
    attrs.interior.push_back(static_cast<int>(interior));
  }
  return attrs;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  CLGPU_REFUSE_RANK(node.input(0), "input", 1);
  const int slot = node.input_count() - 1;
  const tfl::TensorView value = node.input(slot);
  CLGPU_REFUSE_IF(value.tflite_type() != node.input(0).tflite_type(), Why::kOperands,
                  "the value and the input", "differ in type");
  CLGPU_REFUSE_IF(value.rank() > 0 && value.elements() != 1, Why::kParameter, "the value",
                  "is not a scalar");
  if (auto refusal = check_moved(node, slot)) return *refusal;
  const auto attrs = node.builtin() == kDilate ? dilations(node) : paddings(node);
  if (!attrs) return attrs.refusal();
  return Imported{share(*attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<DilateAttrs>();
  ir::Shape dst = node.input(0).shape;
  for (int i = 0; i < dst.rank(); ++i) {
    const std::int64_t size = dst[i] + (dst[i] - std::int64_t{1}) * attrs.interior[uz(i)] +
                              attrs.low[uz(i)] + attrs.high[uz(i)];
    if (size < 1 || size > INT32_MAX) {
      throw ShapeError("axis " + std::to_string(i) + " of " + node.input(0).shape.str() +
                       " would have " + std::to_string(size) + " elements");
    }
    dst[i] = static_cast<int>(size);
  }
  return {dst};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<DilateAttrs>();
  const int slot = value_slot(node.node());
  const ir::Tensor &src = node.input(0), &dst = node.output(0), &value = node.input(slot);
  MoveUnit unit = move_unit(src.storage, dst.storage, 1);
  std::string value_type = unit.dst_type;
  // Bits may be copied only if the value has the same storage as the tensors.
  if (value.storage != dst.storage) {
    unit.src_type = cl_name(src.storage);
    unit.dst_type = cl_name(dst.storage);
    value_type = cl_name(value.storage);
  }
  std::vector<int> steps;
  for (const int interior : attrs.interior) steps.push_back(interior + 1);
  kernel::Launch launch("dilate/dilate.cl", "dilate_gather");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type).macro("VALUE_T", value_type);
  launch.macro("AXES", axes_variant(dst.shape.dims().size()));
  const std::int64_t n = dst.shape.elements();
  launch.src(0).src(slot).dst(0).i32(n);
  const std::array<int, 6> sizes = six(dst.shape.dims(), 1);
  for (std::size_t k = 1; k < sizes.size(); ++k) launch.i32(sizes[k]);
  for (const int size : six(src.shape.dims(), 1)) launch.i32(size);
  for (const int low : six(attrs.low, 0)) launch.i32(low);
  for (const int step : six(steps, 1)) launch.i32(step);
  launch.range({uz(n)}, {kElementwiseGroup});
  return {{"gather", {launch}, {}}};
}

}  // namespace

extern const Family kDilateFamily;
const Family kDilateFamily = [] {
  Family family;
  family.name = "dilate";
  family.attrs = ir::attrs_type<DilateAttrs>();
  family.builtins = {{kDilate, "DILATE", 3}, {kStablehloPad, "STABLEHLO_PAD", 2}};
  family.builtins[0].settings = {1};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
