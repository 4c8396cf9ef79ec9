// Memory and times of a report's partitions, while their interpreter exists.
#pragma once

#include <optional>
#include <vector>

#include "delegate/tell/ledger.hpp"
#include "delegate/tell/profile.hpp"
#include "delegate/tell/report.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::delegate {

/// By partition: the transfer methods of inputs and outputs; empty if it no longer exists.
std::vector<std::vector<runtime::RoadTaken>> roads(const Ledger& ledger);

/// By partition: what became of its chains.
std::vector<runtime::ChainsTaken> chains(const Ledger& ledger);
/// By partition.
std::vector<runtime::BundlesTaken> bundles(const Ledger& ledger);

/// By partition: what became of its command list.
std::vector<runtime::ListTaken> command_lists(const Ledger& ledger);

/// By partition: what was computed again with the option reuse; nothing where it keeps nothing.
/// Waits for inferences in flight.
struct Reused {
  int launches = 0;  ///< of an inference, those that may be left out
  runtime::Executor::Reused so_far;
};
std::vector<std::optional<Reused>> reused(const Ledger& ledger);

/// Executor::device_time, summed over the partitions. Throws Error, as launch_times does, if
/// none of them exists any more.
double device_time(const Ledger& ledger, int runs, int node);
/// Executor::launch_times of the partitions, in their order.
std::vector<LaunchTime> launch_times(const Ledger& ledger, int rounds);

/// The recordings by partition; none without Options::profile. They outlive the interpreter.
Profile profile_of(const Ledger& ledger);
/// Deletes the recordings, and records this many inferences in a row.
void reset_profile(const Ledger& ledger, int in_a_row);

/// By partition: the data of its interpreter; nulls if the partition no longer exists.
std::vector<Live::Held> graphs(const Ledger& ledger);

/// The addresses of tensors; none of partitions that no longer exist.
std::vector<PartitionMemory> memory_map(const Ledger& ledger);
/// The programs; none of partitions that no longer exist.
std::vector<runtime::ProgramUse> programs(const Ledger& ledger);

}  // namespace clgpu::delegate
