// Normalisation of each image and channel over the pixels, as one node.
#pragma once

#include "ops/family.hpp"

namespace clgpu::ops {

/// The node that computes `activation((x - mean) / sqrt(variance + epsilon) * scale + bias)`, mean
/// and variance being those of each image (axis 0) and channel (the last axis) of `x`. It takes the
/// place of `last` with its result and epilogue. `scale` and `bias` are tensors of a number per
/// channel, or -1.
ir::Node instance_norm(const ir::Node& last, int x, float epsilon, int scale, int bias);

}  // namespace clgpu::ops
