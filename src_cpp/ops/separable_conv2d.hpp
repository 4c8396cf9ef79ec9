// A depthwise convolution and the 1x1 convolution that alone reads it, as one node.
#pragma once

#include <optional>

#include "ops/family.hpp"

namespace clgpu::ops {

/// The nodes as they were, but for their tensors' numbers; the result of `depthwise` is output 1 of
/// the node made of both, which nobody reads.
struct SeparableAttrs : ir::Attrs {
  ir::Node depthwise, pointwise;
};

/// The node that computes both, in the place of the second; none when they are no such pair, or not
/// one that the fused kernel takes. That nobody else reads the result between is the caller's
/// knowledge.
std::optional<ir::Node> separable(const ir::Graph& graph, const ir::Node& depthwise,
                                  const ir::Node& pointwise);

/// Whether one launch is better than two on this device, as far as measured.
bool separable_pays(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device);

}  // namespace clgpu::ops
