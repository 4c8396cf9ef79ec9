// Neighbouring launches of a plan that one launch computes.
#pragma once

#include <cstddef>
#include <vector>

#include "kernel/bundle.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

struct Bundle {
  int first = 0;             ///< index into Plan::run
  std::vector<int> buffers;  ///< index into Plan::buffers, for each buffer parameter
  kernel::Bundle kernel;     ///< refers to the launches of the plan, which must outlive it
};

/// The bundles of a plan, in order: each has two steps or more with Step::bundled, which stand in a
/// row, do not use what another one writes, and write little; none of a plan with moves.
/// `local_bytes` has the local memory of each of the plan's run steps, as the device's driver
/// reports it; `most_local` is that of the device.
std::vector<Bundle> find_bundles(const Plan& plan, const std::vector<std::size_t>& local_bytes,
                                 std::size_t most_local);

}  // namespace clgpu::plan
