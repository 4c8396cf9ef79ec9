// What passes may know of the family quantize_rows, which no operation of a model uses.
#pragma once

#include "ir/fields.hpp"
#include "ops/products/conv_geometry.hpp"

namespace clgpu::ops {

/// Floats to int8, each row with its own scale and zero point: kernels/quantize_rows. Inputs: the
/// floats, and a filter or -1; outputs: the integers, and the rows' factors (kI32: the bits of a
/// scale and a zero point).
struct QuantizeRowsAttrs : ir::Attrs {
  bool asymmetric = false;
  /// Elements of a row; 0: a row is an image, that is all axes but the first.
  int depth = 0;
  /// For images: the border that a filter (input 1: [.., h, w, ..]) needs becomes part of the
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

/// The input that is the image of a transpose_conv node.
int transposed_image(const ir::Node& node);

}  // namespace clgpu::ops
