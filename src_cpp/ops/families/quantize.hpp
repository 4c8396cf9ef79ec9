// What passes may know of QUANTIZE.
#pragma once

#include "ir/graph.hpp"

namespace clgpu::ops {

struct Family;

/// QUANTIZE of floats, or of int8 with another scale.
ir::Node quantize_of(int src, int dst);

/// Whether a node is a QUANTIZE of floats.
bool is_quantize_of_floats(const ir::Graph& graph, const ir::Node& node);

/// The kind of its nodes that are views: the writer of their input, or the readers of their result,
/// convert (ir::Tensor::is_converted).
extern const Family kFusedQuantizeFamily;

}  // namespace clgpu::ops
