// What normalisations by mean and variance have in common: one number `epsilon`, and the inputs
// image or rows, scale, bias and residual.
#pragma once

#include <string>
#include <vector>

#include "ir/fields.hpp"
#include "ops/family.hpp"

namespace clgpu::ops {

struct MomentsAttrs : ir::Attrs {
  float epsilon = 0.0F;
  CLGPU_FIELDS(epsilon)
};

namespace moments {

constexpr int kX = 0, kScale = 1, kBias = 2, kResidual = 3;  ///< inputs

/// The shape of x. Throws ShapeError where scale or bias have another number of elements than the
/// last axis of x; `what`: how the sentence begins, as in "an image of 8 channels does".
ir::Shapes infer(const NodeContext& node, const std::string& what);

/// The inputs over which the result may be written, if each item reads what it writes: x and the
/// residual, where they are stored as the result is and that is no slice.
std::vector<int> in_place(const NodeContext& node);

/// Sums of values and squared differences; scale and shift.
double flops(const NodeContext& node);

/// The node of `kind` that computes `activation((x - mean) / sqrt(variance + epsilon) * scale +
/// bias)`. It replaces `last` and has its result and epilogue. `scale` and `bias` are tensors or
/// -1.
ir::Node node(const Family& kind, const ir::Node& last, int x, float epsilon, int scale, int bias);

}  // namespace moments

}  // namespace clgpu::ops
