// FULLY_CONNECTED of rows that are normalised first, or whose result another one multiplies, as one
// node.
#pragma once

#include <optional>

#include "ops/family.hpp"

namespace clgpu::ops {

extern const Family kFusedFullyConnectedFamily, kEndedFullyConnectedFamily;

/// Whether it is a node of FULLY_CONNECTED.
bool is_fully_connected(const ir::Node& node);

/// Nodes that one node may compute; null: there is no such node.
struct ProductParts {
  const ir::Node* norm = nullptr;  ///< rms_norm, of which `product` and `other` read the result
  const ir::Node* product = nullptr;
  const ir::Node* other = nullptr;
  const ir::Node* gate = nullptr;  ///< it multiplies the results of `product` and `other`
};

/// The node that computes them in place of the last one, whose result is output 0; those of the
/// others follow in their order, without readers. None where they are not such nodes, or one launch
/// is not expected to be faster on this device than one for each.
std::optional<ir::Node> fused_product(const ir::Graph& graph, const ProductParts& parts,
                                      const DeviceInfo& device);

/// The node that computes `end` as well, a rotation or an update with the result of `product`, seen
/// as `part`; null, if they are no such nodes: `product` is one of FULLY_CONNECTED, or of
/// fused_product without a gate.
std::optional<ir::Node> ended_product(const ir::Graph& graph, const ir::Node& product,
                                      const ir::Node& end, int part, const DeviceInfo& device);

}  // namespace clgpu::ops
