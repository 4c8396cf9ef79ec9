// A pooling and the node that computes its image, as one node.
#pragma once

#include <optional>

#include "ops/family.hpp"

namespace clgpu::ops {

extern const Family kPooledFamily;

/// The node that computes both, at the position of the pooling; none if they are not such a pair,
/// or no kernel supports it. `first` is a CONV_2D or a LOCAL_RESPONSE_NORMALIZATION. The caller
/// ensures that the image has no other reader.
std::optional<ir::Node> pooled(const ir::Graph& graph, const ir::Node& first,
                               const ir::Node& pooling);

/// Whether one launch is better than two on this device, according to measurements.
bool pooled_pays(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device);

}  // namespace clgpu::ops
