// The attributes of BATCH_MATMUL, and what passes may know of it.
#pragma once

#include <optional>

#include "ir/fields.hpp"
#include "ir/node.hpp"
#include "ops/families/quantize_rows.hpp"

namespace clgpu::ops {

struct BatchMatmulAttrs : DynamicRangeAttrs {
  bool adj_x = false;  ///< the layout of x is [..., depth, rows]
  bool adj_y = false;  ///< the layout of y is [..., cols, depth]
  CLGPU_FIELDS(asymmetric, allows_hybrid, depth, adj_x, adj_y)
};

/// Which matrices a product reads transposed.
struct Adjoints {
  bool x = false, y = false;
};

/// None for a node that is no BATCH_MATMUL.
std::optional<Adjoints> adjoints_of(const ir::Node& node);

}  // namespace clgpu::ops
