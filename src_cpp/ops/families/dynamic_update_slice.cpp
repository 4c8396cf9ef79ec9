// Family of DYNAMIC_UPDATE_SLICE: a tensor of which a part, at a position known at run time, is
// replaced.
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {
namespace {

constexpr int kDynamicUpdateSlice = 151;

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const tfl::TensorView operand = node.input(0), update = node.input(1), start = node.input(2);
  CLGPU_REFUSE_RANK(operand, "input 0", 1);
  CLGPU_REFUSE_TYPE(update, "the update", operand.dtype());
  CLGPU_REFUSE_TYPE(start, "the tensor of indices", DType::kI32, DType::kI64);
  CLGPU_REFUSE_RANK(update, "the update", operand.rank(), operand.rank());
  CLGPU_REFUSE_RANK(start, "the tensor of indices", 1, 1);
  return Imported{};
}

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& operand = node.input(0).shape;
  const ir::Shape& update = node.input(1).shape;
  for (int i = 0; i < operand.rank(); ++i) {
    if (update[i] > operand[i])
      throw ShapeError("an update of shape " + update.str() + " does not fit into " +
                       operand.str());
  }
  if (node.input(2).shape.elements() != operand.rank())
    throw ShapeError("there are " + std::to_string(node.input(2).shape.elements()) +
                     " indices for the " + std::to_string(operand.rank()) + " axes of " +
                     operand.str());
  return {operand};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& operand = node.input(0);
  const ir::Tensor& update = node.input(1);
  const ir::Tensor& dst = node.output(0);
  const int rank = operand.shape.rank();
  // If the last axis is replaced as a whole, wide units lie in the update or beside it.
  const bool whole = operand.shape.back(0) == update.shape.back(0);
  const bool same = operand.storage == dst.storage && update.storage == dst.storage;
  const char* const dst_type = cl_name(dst.storage);
  const MoveUnit unit = same ? move_unit(dst.storage, dst.storage, whole ? dst.shape.back(0) : 1)
                             : MoveUnit{cl_name(operand.storage), dst_type, 1};
  const auto sizes = [&](const ir::Shape& shape) {
    std::vector<int> dims = shape.dims();
    if (!dims.empty()) dims.back() /= unit.elements;
    return six(dims, 1);
  };
  const std::array<int, 6> big = sizes(operand.shape), small = sizes(update.shape);
  const std::int64_t n = dst.shape.elements() / unit.elements;

  const auto macros = [&](kernel::Launch launch) {
    launch.macro("SRC_T", unit.src_type)
        .macro("UPDATE_T", same ? unit.src_type : cl_name(update.storage));
    return launch.macro("DST_T", unit.dst_type).type("INDEX_T", node.input(2).storage);
  };
  const auto sized = [&](kernel::Launch& launch, std::int64_t units) {
    launch.i32(units).i32(rank);
    for (int k = 0; k < 6; ++k) launch.i32(big[uz(k)]);
    for (int k = 0; k < 6; ++k) launch.i32(small[uz(k)]);
    launch.range({uz(units)}, {kElementwiseGroup});
  };
  const char* const file = "dynamic_update_slice/update.cl";
  kernel::Candidate select{"select", {macros({file, "dynamic_update_slice_select"})}, {}};
  sized(select.launches.front().src(0).src(1).src(2).dst(0), n);
  if (operand.storage == dst.storage) {
    select.in_place = {0};
    select.over_input = macros({file, "dynamic_update_slice_write"});
    sized(select.over_input->src(1).src(2).dst(0), update.shape.elements() / unit.elements);
  }
  return {std::move(select)};
}

}  // namespace

extern const Family kDynamicUpdateSliceFamily;
const Family kDynamicUpdateSliceFamily = [] {
  Family family;
  family.name = "dynamic_update_slice";
  family.bundled = true;
  family.builtins = {{kDynamicUpdateSlice, "DYNAMIC_UPDATE_SLICE", 3}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = no_flops;
  return family;
}();

}  // namespace clgpu::ops
