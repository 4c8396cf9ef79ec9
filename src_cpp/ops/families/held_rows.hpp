// What passes may know of the family held_rows, which no operation of a model uses.
#pragma once

#include <vector>

#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {

/// A part of a network that is computed where rows of the inputs have changed.
struct HeldBlock {
  std::vector<RowRange> rows;  ///< by input, see held_row_count(); {0, 0}: it does not depend on it
  int weight = 1;              ///< millions of operations, for statistics
  CLGPU_FIELDS(rows, weight)
};

/// Inputs: tensors that an application sets. Outputs: for each of them the values that the network
/// is computed from, which differ from it by at most the tolerance in each element; then int32
/// [blocks], 1 where a block has to be computed. All outputs are kept (ir::Tensor::is_kept).
struct HeldRowsAttrs : ir::Attrs {
  float tolerance = 0;  ///< of integers in steps
  std::vector<HeldBlock> blocks;
  CLGPU_FIELDS(tolerance, blocks)
};

/// Into how many rows an input is divided, all of one size: those of an image, of all samples.
int held_row_count(const ir::Shape& shape);

/// Whether differences of elements of this type are known.
constexpr bool may_hold(DType type) { return type != DType::kC64; }

/// A node of this family; outputs as HeldRowsAttrs says.
ir::Node held_rows_of(const HeldRowsAttrs& attrs, const std::vector<int>& inputs,
                      const std::vector<int>& outputs);

}  // namespace clgpu::ops
