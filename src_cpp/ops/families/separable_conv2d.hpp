// A depthwise convolution and the 1x1 convolution that is its only reader, as one node.
#pragma once

#include <optional>
#include <vector>

#include "ir/fields.hpp"
#include "ops/family.hpp"

namespace clgpu::ops {

extern const Family kSeparableConv2dFamily;

/// The engine that only inverted residual blocks have.
constexpr const char* kInvertedEngine = "inverted_half";

/// The original nodes, except for their tensors' numbers; the results of `depthwise` and `expand`
/// are outputs 1 and 2 of the merged node, which have no readers.
struct SeparableAttrs : ir::Attrs {
  ir::Node depthwise, pointwise;
  /// A 1x1 convolution before the two: the node is an inverted residual block.
  std::optional<ir::Node> expand;
  CLGPU_FIELDS(depthwise, pointwise, expand)
};

/// The node that computes both, at the position of the second; none if they are not such a pair, or
/// the fused kernel does not support it. The caller ensures that the result between them has no
/// other reader.
std::optional<ir::Node> separable(const ir::Graph& graph, const ir::Node& depthwise,
                                  const ir::Node& pointwise);

/// The node `pair`, made by separable(), with the 1x1 convolution that computes its image; none if
/// `expand` is no such node. The caller ensures that the image has no other reader.
std::optional<ir::Node> inverted(const ir::Graph& graph, const ir::Node& expand,
                                 const ir::Node& pair);

// Shared by the files of this family.
namespace separable_conv2d {

constexpr int kImage = 0, kFilter = 1, kFilterBias = 2, kWeights = 3, kBias = 4, kResidual = 5;
constexpr int kExpandWeights = 6, kExpandBias = 7, kSlopes = 8;
constexpr int kResult = 0, kBetween = 1, kExpanded = 2;  // outputs

/// The nodes, with their tensors' numbers in this graph, which may have been renumbered since.
struct Parts {
  ir::Node depthwise, pointwise;
  std::optional<ir::Node> expand;
  ir::Node pair;  ///< the first two as one node
};
Parts parts_of(const NodeContext& node);

/// Why the fused kernel of int8 (fused_s8_nvidia.cl) cannot compute a quantised node; empty if it
/// can.
std::string int8_refusal(const NodeContext& node, const DeviceInfo& device);

/// Its variants, best guess first.
std::vector<kernel::Candidate> fused_int8(const NodeContext& node, const DeviceInfo& device);

/// Variants of the kernel of halves (fused_f16_nvidia.cl), best guess first, with their times. None
/// if the image is no half or the device has no tensor cores; one that gives the reason if only
/// this node cannot use them.
std::vector<kernel::Candidate> fused_half(const NodeContext& node, const DeviceInfo& device);

/// Whether those are to be expected, before tensors have their storage.
bool may_be_half(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device);

/// Estimate of the microseconds of the two launches of halves of the parts.
double apart_microseconds(const NodeContext& node, const DeviceInfo& device);

}  // namespace separable_conv2d

/// Whether the device may have a kernel that computes the three at once.
bool inverted_pays(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device);

/// Whether one launch is better than two on this device, according to measurements; or may be, and
/// the candidates of the node decide. Without `halves`, the kernels of halves do not count.
bool separable_pays(const ir::Graph& graph, const ir::Node& node, bool halves,
                    const DeviceInfo& device);

}  // namespace clgpu::ops
