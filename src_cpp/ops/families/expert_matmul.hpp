// Products with matrices that are chosen by index: nodes that passes::gather_experts makes.
#pragma once

#include <optional>

#include "ir/fields.hpp"
#include "ir/graph.hpp"

namespace clgpu::ops {

struct ExpertMatmulAttrs : ir::Attrs {
  bool transposed = false;  ///< the matrices are [depth, cols], otherwise [cols, depth]
  bool x_column = false;    ///< x has one row, stated as a column
  bool column = false;      ///< the result has one row, stated as a column
  CLGPU_FIELDS(transposed, x_column, column)
};

/// The node that computes a BATCH_MATMUL of x and of matrices that a GATHER has chosen, without the
/// GATHER. `slot`: the input that the GATHER writes. Nothing if it is not such a product.
std::optional<ir::Node> expert_matmul(const ir::Graph& graph, const ir::Node& gather,
                                      const ir::Node& product, int slot);

}  // namespace clgpu::ops
