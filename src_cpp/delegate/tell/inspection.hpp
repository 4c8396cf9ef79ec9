// What the partitions of a report hold and take, as long as their interpreter has them.
#pragma once

#include <vector>

#include "delegate/tell/ledger.hpp"
#include "delegate/tell/profile.hpp"
#include "delegate/tell/report.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::delegate {

/// By partition: the roads of its inputs and outputs; none of one that is gone.
std::vector<std::vector<runtime::RoadTaken>> roads(const Ledger& ledger);

/// Executor::device_time, summed over the partitions. Like launch_times it throws Error when none
/// of them exists any more.
double device_time(const Ledger& ledger, int runs, int node);
/// Executor::launch_times of the partitions, in their order.
std::vector<LaunchTime> launch_times(const Ledger& ledger, int rounds);

/// What was recorded, by partition; nothing without Options::profile. Outlives the interpreter.
Profile profile_of(const Ledger& ledger);
/// Forgets that, and has so many inferences in a row recorded.
void reset_profile(const Ledger& ledger, int in_a_row);

/// By partition: what its interpreter has; nulls of what is gone.
std::vector<Live::Held> graphs(const Ledger& ledger);

/// Where tensors lie; none of the partitions that are gone.
std::vector<PartitionMemory> memory_map(const Ledger& ledger);
/// The programs; none of the partitions that are gone.
std::vector<runtime::ProgramUse> programs(const Ledger& ledger);

}  // namespace clgpu::delegate
