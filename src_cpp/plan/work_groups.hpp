// Work-groups that a device and its kernels allow.
#pragma once

#include <string>
#include <vector>

#include "base/device_info.hpp"
#include "ops/family.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

/// Why the work-groups of a launch are too large for a device; empty if they are not.
std::string group_exceeded(const kernel::Launch& launch, const DeviceInfo& device);

/// Work-items of the largest work-group that a kernel of this candidate requires.
std::size_t demanded_items(const kernel::Candidate& candidate);

/// The candidates of a family for a node. If kernels do not depend on the work-group size,
/// work-groups that are too large are divided. Candidates with kernels that allow less than the
/// device are made as for a smaller device, if the family supports it.
std::vector<kernel::Candidate> offered(const ops::Family& family, const ops::NodeContext& node,
                                       const DeviceInfo& device, const Broken& broken);

}  // namespace clgpu::plan
