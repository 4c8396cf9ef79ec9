// Rotations of pairs of numbers, which the pass fuse_rotation makes.
#pragma once

#include "ir/node.hpp"

namespace clgpu::ops {

/// The node that turns the pairs (x[..., j], x[..., j + half]) of `x`, whose last axis has 2 * half
/// elements, by angles. `cosine` and `sine` have one shape, which broadcasts to that of `x` but for
/// the last axis: that has half elements, or those of `x`. It replaces `last` and has its result.
ir::Node rotation(const ir::Node& last, int x, int cosine, int sine);

}  // namespace clgpu::ops
