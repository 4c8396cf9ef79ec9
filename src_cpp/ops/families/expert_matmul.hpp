// Products with matrices that are chosen by index: nodes that passes::gather_experts and
// passes::group_experts make.
#pragma once

#include <optional>

#include "ir/fields.hpp"
#include "ir/graph.hpp"
#include "ops/family.hpp"

namespace clgpu::ops {

extern const Family kExpertMatmulFamily;

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

/// Whether experts with such nodes of FULLY_CONNECTED may be computed by expert_product: floats
/// times a constant matrix of floats, with a constant bias or none.
bool is_expert_product(const ir::Graph& graph, const ir::Node& product);

/// The product of x `[samples, chosen or 1, 1, depth]` with those of the matrices `[experts, cols,
/// depth]` that `indices` `[samples, chosen]` names, in place of such nodes of experts that are
/// alike; `product` is one of them. Its result is `[samples, chosen, 1, cols]`, without a bias.
ir::Node expert_product(const ir::Node& product, int x, int matrices, int indices, int result);

}  // namespace clgpu::ops
