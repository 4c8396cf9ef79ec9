// Family of REVERSE_V2: the order of elements reversed along some axes.
#include <algorithm>

#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kReverseV2 = 105;

struct ReverseAttrs : ir::Attrs {
  std::vector<int> axes;
  CLGPU_FIELDS(axes)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const int rank = node.input(0).rank();
  const auto axes = node.input(1).ints();
  CLGPU_REFUSE_IF(!axes, Why::kRunTime, "the tensor of axes");
  ReverseAttrs attrs;
  for (const std::int64_t a : *axes) {
    const auto axis = checked_axis(a, rank);
    if (!axis) return axis.refusal();
    CLGPU_REFUSE_IF(std::count(attrs.axes.begin(), attrs.axes.end(), *axis) != 0, Why::kParameter,
                    "axis " + std::to_string(*axis), "is named twice");
    attrs.axes.push_back(*axis);
  }
  return Imported{share(attrs), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& src = node.input(0);
  StridedCopy copy{src.shape.dims(), src.shape.strides(), 0};
  for (const int axis : node.attrs<ReverseAttrs>().axes) {
    int& stride = copy.strides[uz(axis)];
    copy.base += static_cast<std::int64_t>(src.shape[axis] - 1) * stride;
    stride = -stride;
  }
  return {{"gather", {strided_copy(copy, src.storage, node.output(0).storage)}, {}}};
}

}  // namespace

extern const Family kReverseFamily;
const Family kReverseFamily = [] {
  Family family;
  family.name = "reverse";
  family.attrs = ir::attrs_type<ReverseAttrs>();
  family.builtins = {{kReverseV2, "REVERSE_V2", 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.infer = infer_same_as_input;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
