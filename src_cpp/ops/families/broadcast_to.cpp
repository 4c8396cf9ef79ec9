// Family of BROADCAST_TO: repeats axes of size 1, and axes that are missing in front.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kBroadcastTo = 130;

struct BroadcastToAttrs : ir::Attrs {
  std::vector<int> dims;  ///< of the output
  CLGPU_FIELDS(dims)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const auto dims = node.input(1).ints();
  CLGPU_REFUSE_IF(!dims, Why::kRunTime, "the new shape");
  CLGPU_REFUSE_IF(static_cast<int>(dims->size()) < node.input(0).rank(), Why::kParameter,
                  "the new shape", "has fewer axes than the input");
  BroadcastToAttrs attrs;
  for (const std::int64_t size : *dims) {
    if (size < 0) return wrong_value("a size of the new shape", size, "0 and more");
    attrs.dims.push_back(static_cast<int>(size));
  }
  return Imported{share(attrs), {}};
}

StridedCopy copy_to(const ir::Shape& src, const ir::Shape& dst) {
  return {dst.dims(), broadcast_strides(src, dst), 0};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape dst(node.attrs<BroadcastToAttrs>().dims);
  const ir::Shape& src = node.input(0).shape;
  for (int i = 0; i < src.rank(); ++i) {
    if (src.back(i) != 1 && src.back(i) != dst.back(i)) {
      throw ShapeError(src.str() + " does not broadcast to " + dst.str());
    }
  }
  if (const std::size_t axes = merged(copy_to(src, dst)).dims.size(); axes > uz(kMaxRank)) {
    throw ShapeError(src.str() + " to " + dst.str() + " is a broadcast along " +
                     std::to_string(axes) + " axes after neighbours are merged; supported: 0 to " +
                     std::to_string(kMaxRank));
  }
  return {dst};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const StridedCopy copy = copy_to(src.shape, dst.shape);
  return {{"gather", {strided_copy(copy, src.storage, dst.storage)}, {}}};
}

}  // namespace

extern const Family kBroadcastToFamily;
const Family kBroadcastToFamily = [] {
  Family family;
  family.name = "broadcast_to";
  family.attrs = ir::attrs_type<BroadcastToAttrs>();
  family.builtins = {{kBroadcastTo, "BROADCAST_TO", 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.most_axes = kMostAxes;
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
