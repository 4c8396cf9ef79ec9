// The attributes of GATHER and EMBEDDING_LOOKUP, and parts of their tables.
#pragma once

#include "ir/fields.hpp"
#include "ir/node.hpp"

namespace clgpu::ops {

struct GatherAttrs : ir::Attrs {
  int table = 0;  ///< slot of the input from which elements are taken; the other one has indices
  int axis = 0;
  int batch_dims = 0;  ///< leading axes that input and indices have in common; at most `axis`
  /// The row of the whole table with which this part of it begins: other rows are those of input 2,
  /// or zeros without one. -1: it is the whole table.
  int first = -1;
  CLGPU_FIELDS(table, axis, batch_dims, first)
};

/// The tensor from which a node takes rows; -1 if the node does something else.
int table_of(const ir::Node& node);

/// A node that takes rows of a part of the table, which begins at row `first` of the whole one.
/// `before`: the tensor with the rows of the parts before it, -1: there is none.
ir::Node part_of_table(const ir::Node& node, int part, int first, int before, int result);

/// A node that takes rows of `table` in place of a part of the node `of`.
ir::Node rows_of_table(const ir::Node& of, int table, int indices, int result);

}  // namespace clgpu::ops
