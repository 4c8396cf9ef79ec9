// Row rules shared by several families.
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {
namespace {

// Whether an input is the same for all rows of the results.
bool is_broadcast(const ir::Shape& shape) {
  return shape.rank() < 4 ? shape.back(2) == 1 : shape[1] == 1;
}

int rowwise_unit(const NodeContext& node) {
  const ir::Shape& result = node.output(0).shape;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const ir::Shape& shape = node.input(i).shape;
    if (is_broadcast(shape)) continue;
    if (shape.rank() != 4 || result.rank() != 4 || shape[1] != result[1]) return 0;
  }
  return 1;
}

RowNeed rowwise_need(const NodeContext& node, int input, RowRange rows) {
  if (is_broadcast(node.input(input).shape)) return {};
  return {RowNeed::Kind::kExact, rows};
}

ir::AttrsPtr same_attrs(const NodeContext& node, const RowBand&) { return node.node().attrs; }

}  // namespace

const RowRules kRowwise{rowwise_unit, rowwise_need, same_attrs};

}  // namespace clgpu::ops
