// Family of GATHER_ND: slices chosen by rows of indices.
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kGatherNd = 107;

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const tfl::TensorView indices = node.input(1);
  CLGPU_REFUSE_TYPE(indices, "the tensor of indices", DType::kI32, DType::kI64, DType::kI16);
  CLGPU_REFUSE_RANK(node.input(0), "input", 1);
  CLGPU_REFUSE_RANK(indices, "the tensor of indices", 1);
  return Imported{nullptr, {}};
}

/// Axes of the input that one row of indices addresses.
int depth_of(const NodeContext& node) { return node.input(1).shape.back(0); }

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(0).shape;
  const ir::Shape& indices = node.input(1).shape;
  const int depth = depth_of(node);
  if (depth > src.rank()) {
    throw ShapeError("rows of " + std::to_string(depth) + " indices for an input of shape " +
                     src.str());
  }
  std::vector<int> dims(indices.dims().begin(), indices.dims().end() - 1);
  dims.insert(dims.end(), src.dims().begin() + depth, src.dims().end());
  return {ir::Shape(dims)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const int depth = depth_of(node);
  const std::int64_t inner = src.shape.elements(depth, src.shape.rank());
  const MoveUnit unit = move_unit(src.storage, dst.storage, inner);
  const std::int64_t n = dst.shape.elements() / unit.elements;

  kernel::Launch launch("gather_nd/gather_nd.cl", "gather_nd_rows");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  launch.type("INDEX_T", node.input(1).storage);
  launch.src(0).src(1).dst(0).i32(n).i32(inner / unit.elements).i32(depth);
  for (int k = 0; k < 6; ++k) launch.i32(k < depth ? src.shape[k] : 1);
  launch.range({uz(n)}, {kElementwiseGroup});
  return {{"rows", {launch}, {}}};
}

}  // namespace

extern const Family kGatherNdFamily;
const Family kGatherNdFamily = [] {
  Family family;
  family.name = "gather_nd";
  family.builtins = {{kGatherNd, "GATHER_ND", 2}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
