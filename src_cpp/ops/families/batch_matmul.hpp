// The attributes of BATCH_MATMUL.
#pragma once

#include "ir/fields.hpp"
#include "ops/families/quantize_rows.hpp"

namespace clgpu::ops {

struct BatchMatmulAttrs : DynamicRangeAttrs {
  bool adj_x = false;  ///< the layout of x is [..., depth, rows]
  bool adj_y = false;  ///< the layout of y is [..., cols, depth]
  CLGPU_FIELDS(asymmetric, allows_hybrid, depth, adj_x, adj_y)
};

}  // namespace clgpu::ops
