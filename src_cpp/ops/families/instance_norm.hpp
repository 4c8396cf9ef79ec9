// Normalisation of each image and channel over the pixels, as one node.
#pragma once

#include <vector>

#include "ops/family.hpp"

namespace clgpu::ops {

/// The node that computes `activation((x - mean) / sqrt(variance + epsilon) * scale + bias)`, with
/// mean and variance of each image (axis 0) and channel (the last axis) of `x`. It replaces `last`
/// and has its result and epilogue. `scale` and `bias` are tensors with one number per channel, or
/// -1.
ir::Node instance_norm(const ir::Node& last, int x, float epsilon, int scale, int bias);

/// Candidates for a node of another family with the same inputs, whose channels are normalised in
/// `groups` groups of neighbours.
std::vector<kernel::Candidate> instance_norm_candidates(const NodeContext& node,
                                                        const DeviceInfo& device, float epsilon,
                                                        int groups);

}  // namespace clgpu::ops
