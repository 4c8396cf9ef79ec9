// Family of copies of some rows of a tensor; the pass stream_rows makes the nodes, the runtimes
// know no such operation.
#include "ops/families/rows.hpp"

#include <numeric>

#include "ir/fields.hpp"
#include "ops/shared/movement.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {

extern const Family kRowsFamily, kKeptRowsFamily;

namespace {

struct RowsAttrs : ir::Attrs {
  RowRange rows;
  bool samples = false;  ///< they are positions along axis 0, not rows
  CLGPU_FIELDS(rows, samples)

  int axis() const { return samples ? 0 : 1; }
};

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<RowsAttrs>();
  const RowRange rows = attrs.rows;
  ir::Shape shape = node.input(0).shape;
  CLGPU_CHECK(rows.first >= 0 && rows.first < rows.end && rows.end <= shape[attrs.axis()]);
  shape[attrs.axis()] = rows.count();
  return {shape};
}

// Rows are adjacent in memory.
std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo&) {
  const ir::Tensor& src = node.input(0);
  const ir::Tensor& dst = node.output(0);
  const std::int64_t elements = dst.shape.elements();
  const auto& attrs = node.attrs<RowsAttrs>();
  const std::int64_t first = attrs.rows.first * src.shape.elements(attrs.axis() + 1, 4);
  const ResultLayout layout = result_layout(node);
  const MoveUnit unit =
      move_unit(src.storage, dst.storage, layout.common_divisor(std::gcd(elements, first)));
  kernel::Launch launch("rows/rows.cl", "rows_copy");
  launch.macro("SRC_T", unit.src_type).macro("DST_T", unit.dst_type);
  push_result(launch.src(0), layout, unit.elements);
  launch.i32(elements / unit.elements).i32(first / unit.elements);
  launch.range({uz(elements / unit.elements)}, {kElementwiseGroup});
  return {{"copy", {launch}, {}}};
}

}  // namespace

const Family kRowsFamily = [] {
  Family family;
  family.name = "rows";
  family.attrs = ir::attrs_type<RowsAttrs>();
  family.writes_slices = true;
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = no_flops;
  family.variants = {&kKeptRowsFamily};
  return family;
}();

// The same, except for writes_slices.
const Family kKeptRowsFamily = [] {
  Family family;
  family.name = "rows";
  family.variant = "kept";
  family.attrs = ir::attrs_type<RowsAttrs>();
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = no_flops;
  return family;
}();

namespace {

ir::Node copy_of(int source, const RowsAttrs& attrs, int result, bool kept) {
  ir::Node node;
  node.kind = kept ? &kKeptRowsFamily : &kRowsFamily;
  node.op = "ROWS";
  node.inputs = {source};
  node.outputs = {result};
  node.attrs = share(attrs);
  return node;
}

}  // namespace

ir::Node rows_of(int source, RowRange rows, int result, bool kept) {
  RowsAttrs attrs;
  attrs.rows = rows;
  return copy_of(source, attrs, result, kept);
}

ir::Node sample_of(int source, int sample, int result) {
  RowsAttrs attrs;
  attrs.rows = {sample, sample + 1};
  attrs.samples = true;
  return copy_of(source, attrs, result, /*kept=*/true);
}

}  // namespace clgpu::ops
