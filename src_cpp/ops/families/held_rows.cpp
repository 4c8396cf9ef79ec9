// Family of the comparison of inputs with those of earlier inferences; the pass reuse_rows makes
// the nodes, the runtimes know no such operation.
#include "ops/families/held_rows.hpp"

#include <algorithm>
#include <cmath>

#include "ops/shared/sharing.hpp"
#include "ops/work.hpp"

namespace clgpu::ops {

extern const Family kHeldRowsFamily;

namespace {

constexpr int kState = 0, kChanged = 1, kTable = 2;  // scratch
constexpr std::int64_t kStateBytes = 4 * size_of(DType::kI64);
constexpr int kGroup = 64;

ir::Shapes infer(const NodeContext& node) {
  ir::Shapes shapes;
  for (int i = 0; i < node.input_count(); ++i) shapes.push_back(node.input(i).shape);
  shapes.push_back({static_cast<int>(node.attrs<HeldRowsAttrs>().blocks.size())});
  return shapes;
}

// Differences of integers have no fractions, and none exceeds the range of 32 bits by much.
std::string tolerance_of(float tolerance, bool integers) {
  if (!integers) return ir::text_of(tolerance) + (tolerance == std::floor(tolerance) ? ".0f" : "f");
  return std::to_string(static_cast<std::int64_t>(std::min(tolerance, 2147483520.0F)));
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<HeldRowsAttrs>();
  const int inputs = node.input_count();
  const std::size_t items = group_of(kGroup, device);
  const auto launch = [&](const char* entry, DType type, bool integers) {
    kernel::Launch result("held_rows/held_rows.cl", entry);
    result.macro("WG", static_cast<std::int64_t>(items)).type("SRC_T", type);
    result.macro("INTEGERS", integers ? 1 : 0);
    result.macro("TOLERANCE", tolerance_of(attrs.tolerance, integers));
    return result;
  };
  kernel::Candidate candidate{"rows", {}, {}};
  std::vector<int> first;  // row of each input among those of all
  std::int64_t rows = 0;
  for (int i = 0; i < inputs; ++i) {
    const ir::Tensor& input = node.input(i);
    const bool integers = !is_float(input.storage);
    const int own = held_row_count(input.shape);
    kernel::Launch hold = launch("held_rows_renew", input.storage, integers);
    hold.src(i).scratch_in(kState);
    hold.arg(kernel::Operand{kernel::Operand::Kind::kOutput, i, true, true});
    hold.scratch_out(kChanged).i32(input.shape.elements() / own).i32(rows);
    hold.range({uz(own) * items}, {items});
    candidate.launches.push_back(std::move(hold));
    first.push_back(static_cast<int>(rows));
    rows += own;
  }
  std::vector<std::int32_t> table;
  for (const HeldBlock& block : attrs.blocks) {
    table.push_back(block.weight);
    for (int i = 0; i < inputs; ++i) {
      const RowRange range =
          i < static_cast<int>(block.rows.size()) ? block.rows[uz(i)] : RowRange{};
      table.push_back(first[uz(i)] + range.first);
      table.push_back(first[uz(i)] + range.end);
    }
  }
  kernel::Launch blocks = launch("held_rows_blocks", DType::kF32, false);
  blocks.scratch_in(kChanged).scratch_in(kTable).scratch_inout(kState).dst(inputs);
  blocks.i32(static_cast<std::int64_t>(attrs.blocks.size())).i32(inputs).range({items}, {items});
  candidate.launches.push_back(std::move(blocks));
  kernel::Scratch state{kStateBytes};
  state.remembers = true;
  candidate.scratch = {
      state, {rows * static_cast<std::int64_t>(sizeof(std::int32_t))}, kernel::table(table)};
  return {candidate};
}

}  // namespace

const Family kHeldRowsFamily = [] {
  Family family;
  family.name = "held_rows";
  family.attrs = ir::attrs_type<HeldRowsAttrs>();
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = no_flops;
  family.allows_quantized = true;
  return family;
}();

int held_row_count(const ir::Shape& shape) {
  if (shape.rank() < 3) return 1;
  return static_cast<int>(shape.elements(0, shape.rank() - 2));
}

ir::Node held_rows_of(const HeldRowsAttrs& attrs, const std::vector<int>& inputs,
                      const std::vector<int>& outputs) {
  ir::Node node;
  node.kind = &kHeldRowsFamily;
  node.op = "HELD_ROWS";
  node.inputs = inputs;
  node.outputs = outputs;
  node.attrs = share(attrs);
  return node;
}

}  // namespace clgpu::ops
