// Family of WHERE: the places of the elements that are not 0. How many there are decides on the
// shape of the result, so a node of a variant counts them first.
#include <algorithm>

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::ops {

extern const Family kWhereFamily, kWhereCountFamily;

namespace {

constexpr int kWhere = 109;
constexpr int kChunk = 32;  // elements of a work-item

struct WhereAttrs : ir::Attrs {
  int rows = 0;
  CLGPU_FIELDS(rows)
};

OrRefusal<Imported> import_measured(const tfl::NodeView& node, std::int64_t number) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kBool, DType::kF32, DType::kI64, DType::kI32,
                    DType::kI8, DType::kU8);
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kI64);
  CLGPU_REFUSE_RANK(node.input(0), "input", 1);
  WhereAttrs attrs;
  attrs.rows = static_cast<int>(number);
  return Imported{share(attrs), {}};
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  if (auto checked = import_measured(node, 0); !checked) return checked;
  if (node.input(0).has_data()) {
    if (const auto values = node.input(0).ints())
      return import_measured(node, std::count_if(values->begin(), values->end(),
                                                 [](std::int64_t value) { return value != 0; }));
  }
  return Refusal{Why::kRunTime, "the number of elements that are not 0"};
}

ir::Shapes infer(const NodeContext& node) {
  return {ir::Shape{node.attrs<WhereAttrs>().rows, node.input(0).shape.rank()}};
}

ir::Shapes infer_count(const NodeContext& /*node*/) { return {ir::Shape{1}}; }

struct Sizes {
  std::int64_t count, chunks;
  std::size_t group;  // that adds the numbers of chunks
};

Sizes sizes_of(const NodeContext& node, const DeviceInfo& device) {
  const std::int64_t count = node.input(0).shape.elements();
  return {count, ceil_div(count, kChunk), group_of(device.is_cpu() ? 64 : 256, device)};
}

kernel::Launch launch_of(const char* entry, const NodeContext& node, const Sizes& sizes) {
  kernel::Launch launch("where/where.cl", entry);
  launch.type("SRC_T", node.input(0).storage).type("DST_T", node.output(0).storage);
  launch.macro("CHUNK", kChunk).macro("WG", static_cast<std::int64_t>(sizes.group));
  return launch;
}

kernel::Launch count_chunks(const NodeContext& node, const Sizes& sizes) {
  kernel::Launch launch = launch_of("where_count", node, sizes);
  launch.src(0).scratch_out(0).i32(sizes.count).i32(sizes.chunks);
  launch.range({uz(sizes.chunks)}, {kElementwiseGroup});
  return launch;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const Sizes sizes = sizes_of(node, device);
  const ir::Shape& src = node.input(0).shape;
  kernel::Launch offsets = launch_of("where_offsets", node, sizes);
  offsets.scratch_inout(0).i32(sizes.chunks).range({sizes.group}, {sizes.group});
  kernel::Launch write = launch_of("where_write", node, sizes);
  write.src(0).scratch_in(0).dst(0).i32(sizes.count).i32(sizes.chunks);
  write.i32(node.output(0).shape[0]).i32(src.rank());
  for (int axis = 0; axis < kMaxRank; ++axis) write.i32(axis < src.rank() ? src[axis] : 1);
  write.range({uz(sizes.chunks)}, {kElementwiseGroup});
  return {{"chunks",
           {count_chunks(node, sizes), offsets, write},
           {{(sizes.chunks + 1) * static_cast<std::int64_t>(sizeof(std::int32_t))}}}};
}

std::vector<kernel::Candidate> count(const NodeContext& node, const DeviceInfo& device) {
  const Sizes sizes = sizes_of(node, device);
  kernel::Launch total = launch_of("where_total", node, sizes);
  total.scratch_in(0).dst(0).i32(sizes.chunks).range({sizes.group}, {sizes.group});
  return {{"chunk_counts",
           {count_chunks(node, sizes), total},
           {{sizes.chunks * static_cast<std::int64_t>(sizeof(std::int32_t))}}}};
}

double flops(const NodeContext& node) {
  return static_cast<double>(node.input(0).shape.elements());
}

}  // namespace

const Family kWhereFamily = [] {
  Family family;
  family.name = "where";
  family.attrs = ir::attrs_type<WhereAttrs>();
  Operation where{kWhere, "WHERE", 1, 0, 1, -1};
  where.measured = 0;
  family.builtins = {where};
  family.import = import;
  family.import_measured = import_measured;
  family.measure = &kWhereCountFamily;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.flops = flops;
  family.variants = {&kWhereCountFamily};
  return family;
}();

const Family kWhereCountFamily = [] {
  Family family;
  family.name = "where";
  family.variant = "count";
  family.infer = infer_count;
  family.candidates = count;
  family.allows_quantized = true;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
