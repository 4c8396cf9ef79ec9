// Nodes that passes make of several: the launches of their parts, one after the other.
#pragma once

#include <vector>

#include "ops/family.hpp"

namespace clgpu::ops {

/// A launch of one of the parts as a launch of the whole node: its buffers are looked up by tensor,
/// and its scratch buffers come after `scratch` others.
kernel::Launch translated(kernel::Launch launch, const ir::Node& part, const ir::Node& whole,
                          int scratch);

/// The launches of all parts in their order: of each the best guess, or with `plain` the simplest;
/// without `tensor_cores` only of those that use none. Parts read and write tensors of the whole
/// node only.
kernel::Candidate separate(const NodeContext& node, const std::vector<ir::Node>& parts,
                           const DeviceInfo& device, bool plain, bool tensor_cores = true);

}  // namespace clgpu::ops
