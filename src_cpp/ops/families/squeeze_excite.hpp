// A tensor that is multiplied by a gate, which small products compute of means over pixels: as one
// node.
#pragma once

#include <optional>

#include "ops/family.hpp"

namespace clgpu::ops {

extern const Family kSqueezeExciteFamily;

/// Nodes that one node may compute, in this order; null: there is no such node.
struct GateParts {
  const ir::Node* addend = nullptr;   ///< it adds two tensors, of whose sum `mean` is taken
  const ir::Node* mean = nullptr;     ///< over the pixels
  const ir::Node* first = nullptr;    ///< products of the mean, with an activation
  const ir::Node* second = nullptr;   ///< products of that, or of the mean
  bool hard = false;                  ///< the gate is relu6(x + 3) / 6 of the results of `second`
  const ir::Node* product = nullptr;  ///< it multiplies `image` by the gate
  int image = -1;
};

/// Whether a node is the mean over the pixels of images, NHWC, with or without these axes.
bool averages_pixels(const ir::Graph& graph, const ir::Node& node);

/// Whether a node multiplies rows, or images of one pixel, by constant weights.
bool multiplies_pixels(const ir::Graph& graph, const ir::Node& node);

/// The node that computes them in place of the product. None where they are not such nodes.
std::optional<ir::Node> squeeze_excite(const ir::Graph& graph, const GateParts& parts);

/// Whether two launches are expected to be faster on this device than one for each of the nodes.
bool squeeze_excite_pays(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device);

}  // namespace clgpu::ops
