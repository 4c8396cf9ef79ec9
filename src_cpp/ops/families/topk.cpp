// Family of TOPK_V2: the largest elements of the last axis and their indices.
#include "ir/fields.hpp"
#include "ops/quantized/quantized.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kTopkV2 = 48;

struct TopkAttrs : ir::Attrs {
  std::int64_t k = 1;
  CLGPU_FIELDS(k)
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto refusal = check_moved(node, 0)) return *refusal;
  const tfl::TensorView src = node.input(0);
  CLGPU_REFUSE_TYPE(src, "input", DType::kF32, DType::kI32, DType::kI64, DType::kI16, DType::kI8,
                    DType::kU8);
  CLGPU_REFUSE_TYPE(node.output(1), "output of indices", DType::kI32, DType::kI16);
  CLGPU_REFUSE_RANK(src, "input", 1);
  const auto k = node.input(1).ints();
  CLGPU_REFUSE_IF(!k, Why::kRunTime, "k");
  CLGPU_REFUSE_IF(k->size() != 1 || (*k)[0] < 1, Why::kParameter, "k", "is not a positive number");
  TopkAttrs attrs;
  attrs.k = (*k)[0];
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const std::int64_t k = node.attrs<TopkAttrs>().k;
  ir::Shape dst = node.input(0).shape;
  if (k > dst.back(0)) {
    throw ShapeError("k is " + std::to_string(k) + ", more than the last axis of " + dst.str());
  }
  if (node.output(1).dtype == DType::kI16 && dst.back(0) > INT16_MAX + 1) {
    throw ShapeError("the last axis of " + dst.str() + " is too long for indices of int16");
  }
  dst[dst.rank() - 1] = static_cast<int>(k);
  return {dst, dst};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const std::int64_t k = node.attrs<TopkAttrs>().k;
  const ir::Tensor& src = node.input(0);
  const DType index = node.output(1).storage;
  const std::int64_t cols = src.shape.back(0);
  const std::int64_t rows = src.shape.elements() / cols;
  const std::size_t group = group_of(device.is_cpu() ? 64 : 256, device);

  const auto make = [&](const char* name, const char* entry, std::size_t items) {
    kernel::Launch launch("topk/topk.cl", entry);
    launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
    launch.type("INDEX_T", index);
    launch.macro("WG", static_cast<std::int64_t>(group));
    launch.src(0).dst(0).dst(1).i32(rows).i32(cols).i32(k).range({items}, {group});
    return kernel::Candidate{name, {launch}, {}};
  };
  const auto rank = make("rank", "topk_rank", uz(rows * cols));
  const auto select = make("select", "topk_select", uz(rows) * group);
  // Number of comparisons: cols * cols, distributed over all compute units, against k * cols on one
  // of them.
  const std::int64_t spread = device.is_cpu() ? 1 : 64;
  if (cols <= k * spread) return {rank, select};
  return {select, rank};
}

}  // namespace

extern const Family kTopkFamily;
const Family kTopkFamily = [] {
  Family family;
  family.name = "topk";
  family.attrs = ir::attrs_type<TopkAttrs>();
  family.builtins = {{kTopkV2, "TOPK_V2", 2, 0, 2}};
  for (Operation& operation : family.builtins) operation.settings = {1};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.indices.output = 1;
  family.selects = true;
  return family;
}();

}  // namespace clgpu::ops
