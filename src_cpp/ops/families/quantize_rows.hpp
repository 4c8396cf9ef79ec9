// What passes may know of the family quantize_rows, which no operation of a model has.
#pragma once

#include "ir/fields.hpp"
#include "ops/products/conv_geometry.hpp"

namespace clgpu::ops {

/// Floats to int8, each row with a scale and a zero point of its own: kernels/quantize_rows.
/// Inputs: the floats, and a filter or -1; outputs: the integers, and the rows' factors (kI32: the
/// bits of a scale and a zero point).
struct QuantizeRowsAttrs : ir::Attrs {
  bool asymmetric = false;
  /// Elements of a row; 0: a row is an image, all but the first axis.
  int depth = 0;
  /// Of images: the border that a filter (input 1: [.., h, w, ..]) needs becomes part of the
  /// result.
  std::optional<ConvGeometry> border;
  CLGPU_FIELDS(asymmetric, depth, border)
};

/// Attributes of FULLY_CONNECTED and BATCH_MATMUL that hybrid arithmetic needs.
struct DynamicRangeAttrs : ir::Attrs {
  bool asymmetric = false;
  bool allows_hybrid = true;
  int depth = 0;  ///< of the constant weights
};

ir::Node quantize_rows(const QuantizeRowsAttrs& attrs, int src, int filter, int dst, int factors);

/// Input of a node of transpose_conv that is its image.
int transposed_image(const ir::Node& node);

}  // namespace clgpu::ops
