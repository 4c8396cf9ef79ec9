// Normalisation of each row, as one node.
#pragma once

#include "ops/family.hpp"

namespace clgpu::ops {

extern const Family kLayerNormFamily;

/// The node that computes `activation((x - mean) / sqrt(variance + epsilon) * scale + bias)`, with
/// mean and variance of each row (the last axis) of `x`. It replaces `last` and has its result and
/// epilogue. `scale` and `bias` are tensors with one number per column, or -1.
ir::Node layer_norm(const ir::Node& last, int x, float epsilon, int scale, int bias);

}  // namespace clgpu::ops
