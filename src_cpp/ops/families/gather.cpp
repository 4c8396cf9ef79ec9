// Family of GATHER and EMBEDDING_LOOKUP: positions along one axis, chosen by indices.
#include "ops/families/gather.hpp"

#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kEmbeddingLookup = 7, kGather = 36;

OrRefusal<Imported> import_lookup(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 1)) return *refusal;
  CLGPU_REFUSE_TYPE(node.input(0), "the tensor of indices", DType::kI32);
  CLGPU_REFUSE_IF(node.input(0).rank() != 1, Why::kRank, "the tensor of indices", {},
                  std::to_string(node.input(0).rank()), {"1"});
  CLGPU_REFUSE_RANK(node.input(1), "the table", 2);
  GatherAttrs attrs;
  attrs.table = 1;
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (node.builtin() == kEmbeddingLookup) return import_lookup(node);
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const tfl::TensorView src = node.input(0), indices = node.input(1);
  CLGPU_REFUSE_TYPE(indices, "the tensor of indices", DType::kI32, DType::kI64, DType::kI16);
  const auto* params = node.params<tfl::GatherParams>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  const auto axis = checked_axis(params->axis, src.rank());
  if (!axis) return axis.refusal();
  const int batch_dims =
      params->batch_dims < 0 ? params->batch_dims + indices.rank() : params->batch_dims;
  CLGPU_REFUSE_IF(batch_dims < 0 || batch_dims > indices.rank() || batch_dims > *axis,
                  Why::kParameter, "",
                  "there are " + std::to_string(params->batch_dims) +
                      " batch axes, more than the indices have or than lie in front of the axis");
  GatherAttrs attrs;
  attrs.axis = *axis;
  attrs.batch_dims = batch_dims;
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<GatherAttrs>();
  const ir::Shape& src = node.input(attrs.table).shape;
  const ir::Shape& indices = node.input(1 - attrs.table).shape;
  std::vector<int> dims;
  for (int i = 0; i < src.rank(); ++i) {
    if (i < attrs.batch_dims && src[i] != indices[i]) {
      throw ShapeError("input " + src.str() + " and indices " + indices.str() +
                       " differ in batch axis " + std::to_string(i));
    }
    if (i != attrs.axis) {
      dims.push_back(src[i]);
      continue;
    }
    for (int k = attrs.batch_dims; k < indices.rank(); ++k) dims.push_back(indices[k]);
  }
  return {ir::Shape(dims)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const auto& attrs = node.attrs<GatherAttrs>();
  const ir::Tensor& src = node.input(attrs.table);
  const ir::Tensor& indices = node.input(1 - attrs.table);
  const ir::Tensor& dst = node.output(0);
  const std::int64_t inner = src.shape.elements(attrs.axis + 1, src.shape.rank());
  const MoveUnit unit = move_unit(src.storage, dst.storage, inner);
  const std::int64_t n = dst.shape.elements() / unit.elements;

  kernel::Launch launch("gather/gather.cl", "gather_rows");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  launch.type("INDEX_T", indices.storage);
  launch.src(attrs.table).src(1 - attrs.table).dst(0).i32(n);
  launch.i32(src.shape.elements(attrs.batch_dims, attrs.axis)).i32(src.shape[attrs.axis]);
  launch.i32(indices.shape.elements(attrs.batch_dims, indices.shape.rank()));
  launch.i32(inner / unit.elements).range({uz(n)}, {kElementwiseGroup});
  return {{"rows", {launch}, {}}};
}

}  // namespace

extern const Family kGatherFamily;
const Family kGatherFamily = [] {
  Family family;
  family.name = "gather";
  family.attrs = ir::attrs_type<GatherAttrs>();
  family.builtins = {{kGather, "GATHER", 2}, {kEmbeddingLookup, "EMBEDDING_LOOKUP", 2, 0, 1, 1}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
