// Nodes of composites that passes make from the elementary operations that converters write.
#pragma once

#include <optional>

#include "ir/node.hpp"

namespace clgpu::ops {

/// The node that computes `x / sqrt(mean of the squares of its row + epsilon) * weight`; a row is
/// the last axis. It replaces `last` and has its result. `weight`: a tensor with one number per
/// channel, or -1.
ir::Node rms_norm(const ir::Node& last, int x, float epsilon, int weight);

/// The number `epsilon` of a node that rms_norm() could have made; nothing of another node.
std::optional<float> rms_norm_epsilon(const ir::Node& node);

/// The node that computes `softmax(scale * q k^T + mask) v` of each head. Axes are batch, position,
/// head and element; there may be more heads of q than of k and v. It replaces `last`, and writes
/// `result`. `mask`: a tensor that broadcasts to [batch, head, position of q, position of k], or
/// -1.
ir::Node attention(const ir::Node& last, int q, int k, int v, int mask, float scale, int result);

}  // namespace clgpu::ops
