// Consecutive launches of a plan that run as the stages of one kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "kernel/chain.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

/// Size of the launch of a chain, and what its kernel may take.
struct ChainLimits {
  std::size_t groups = 1;       ///< work-groups that the device holds at once
  std::size_t items = 1;        ///< work-items of each, the most that a stage may have
  std::size_t slim_items = 0;   ///< of a chain of kernel::Launch::slim stages, if that is more
  std::size_t local_bytes = 0;  ///< local memory of each
  std::size_t buffers = 0;      ///< parameters of the kernel
  std::size_t stages = SIZE_MAX;
  /// Work-groups of a stage for each that the chain takes at once: of more, a launch has more on
  /// the device at a time.
  std::size_t waves = 2;
  bool nvidia = false;  ///< PTX: a part of a work-group has barriers of its own
};

struct Chain {
  int first = 0;             ///< index into Plan::run
  std::vector<int> buffers;  ///< index into Plan::buffers, for each buffer parameter
  kernel::Chain kernel;      ///< refers to the launches of the plan, which must outlive it
};

/// The chains of a plan, two launches or more each; none of a plan with moves. `local_bytes` has
/// the local memory of each of the plan's run steps, as the device's driver reports it. Launches
/// that cannot be stages remain: see kernel::may_be_member, and those beyond the limits. Whoever
/// updates a part of a carried tensor in place must know whether a chain gave up: it is a stage, or
/// no chain comes before it. Chains end before the run steps `cuts`, too; a launch between two of
/// them remains one.
std::vector<Chain> find_chains(const Plan& plan, const std::vector<std::size_t>& local_bytes,
                               const ChainLimits& limits, const std::set<int>& cuts = {});

/// The run steps of a chain.
struct Span {
  int first = 0, end = 0;
};

/// Where chains must end so that the steps of none take more than `longest` together. `seconds` has
/// the time of each run step. A step that takes more on its own ends up alone.
std::set<int> cuts_by_time(const std::vector<Span>& chains, const std::vector<double>& seconds,
                           double longest);

}  // namespace clgpu::plan
