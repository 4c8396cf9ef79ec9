// Rows of convolutions, computed separately.
#pragma once

#include "ops/products/conv_geometry.hpp"
#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {

/// Rows of the image (input 0) that the given rows of a convolution's result need. The filter's
/// size is axes 1 and 2 of input `weights`.
RowNeed conv_need(const NodeContext& node, const ConvGeometry& geometry, int weights,
                  RowRange rows);

/// The convolution that computes `rows` of the result, which has `columns` columns, from `image`,
/// the existing rows of input 0.
ConvAttrs conv_band(const NodeContext& node, const ConvAttrs& attrs, int weights, int columns,
                    RowRange rows, RowRange image);

/// For nodes with ConvAttrs and the inputs image, weights, bias and residual.
extern const RowRules kConvRows;

}  // namespace clgpu::ops
