// Work-groups that a device and its kernels allow.
#pragma once

#include <string>
#include <vector>

#include "base/device_info.hpp"
#include "ops/family.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

/// Why the work-groups of a launch are too large for a device; empty when they are not.
std::string group_exceeded(const kernel::Launch& launch, const DeviceInfo& device);

/// Work-items of the largest work-group that a kernel of this candidate demands.
std::size_t demanded_items(const kernel::Candidate& candidate);

/// The candidates of a family for a node. Launches whose kernels do not care have the work-groups
/// divided that are too large; candidates whose kernels were found to allow less than the device
/// are made as for a smaller device, where the family can.
std::vector<kernel::Candidate> offered(const ops::Family& family, const ops::NodeContext& node,
                                       const DeviceInfo& device, const Broken& broken);

}  // namespace clgpu::plan
