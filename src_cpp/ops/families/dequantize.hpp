// What passes may know of DEQUANTIZE.
#pragma once

#include "ir/fields.hpp"

namespace clgpu::ops {

struct Family;

struct DequantizeAttrs : ir::Attrs {
  bool half = false;  ///< float16 input: no scale, the values themselves
  CLGPU_FIELDS(half)
};

/// Whether a DEQUANTIZE only widens float16 to float32: models with float16 weights have many of
/// these.
bool is_half_dequantize(const ir::Node& node);

/// Whether a node is a DEQUANTIZE of integers.
bool is_dequantize_of_integers(const ir::Node& node);

/// DEQUANTIZE of a tensor of int8.
ir::Node dequantize_of(int src, int dst);

/// The kind of its nodes that are views: the writer of their input, or the readers of their result,
/// convert (ir::Tensor::is_converted).
extern const Family kFusedDequantizeFamily;

}  // namespace clgpu::ops
