#include "delegate/tell/inspection.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/index.hpp"

namespace clgpu::delegate {
namespace {

using Executors = std::vector<std::shared_ptr<runtime::Executor>>;

Executors live_executors(const Ledger& ledger) {
  Executors live;
  for (const Live& partition : ledger.partitions()) {
    if (auto executor = partition.executor.lock()) live.push_back(std::move(executor));
  }
  return live;
}

Executors executors_to_time(const Ledger& ledger) {
  Executors live = live_executors(ledger);
  if (live.empty()) {
    throw Error(
        "no node is on the device: timing needs an interpreter whose tensors are allocated");
  }
  return live;
}

PartitionMemory memory_of(const plan::Plan& plan) {
  using plan::Buffer;
  PartitionMemory memory{static_cast<int>(plan.run.size()), plan.layout, {}};
  for (const std::int64_t bytes : plan.objects) memory.objects.push_back({"arena", bytes, {}});
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.place == Buffer::Place::kArena) {
      memory.objects.at(uz(buffer.object))
          .blocks.push_back({buffer.name, buffer.offset, buffer.bytes, buffer.first, buffer.last,
                             buffer.scratch ? "scratch" : "arena"});
    } else if (buffer.place == Buffer::Place::kWeights || buffer.place == Buffer::Place::kKept) {
      memory.objects.push_back({"weights",
                                buffer.bytes,
                                {{buffer.name, 0, buffer.bytes, -1, memory.launches, "weights"}}});
    }
  }
  return memory;
}

using runtime::Command;
using runtime::CommandTimes;

std::vector<ProfiledCommand> profiled(const std::vector<CommandTimes>& recorded,
                                      const std::vector<Command>& commands,
                                      const std::map<int, ops::Work>& work) {
  std::vector<ProfiledCommand> result;
  std::map<int, double> total, count;  // seconds and launches of each node
  for (const CommandTimes& times : recorded) {
    const Command& command = commands.at(uz(times.command));
    result.push_back({&command, times, 0, command.bytes});
    if (command.kind != Command::Kind::kLaunch) continue;
    total[command.node] += static_cast<double>(times.end - times.start);
    count[command.node] += 1;
  }
  for (ProfiledCommand& row : result) {
    const int node = row.command->node;
    const auto found = work.find(node);
    if (row.command->kind != Command::Kind::kLaunch || found == work.end()) continue;
    const double share = total[node] > 0
                             ? static_cast<double>(row.times.end - row.times.start) / total[node]
                             : 1 / count[node];
    row.flops = share * found->second.flops;
    row.bytes = std::llround(
        share * static_cast<double>(found->second.bytes_read + found->second.bytes_written));
  }
  return result;
}

// By partition, what its executor tells; an empty value if it has none.
template <class T>
std::vector<T> of_executors(const Ledger& ledger, T (runtime::Executor::*tell)() const) {
  std::vector<T> all;
  for (const Live& partition : ledger.partitions()) {
    const auto executor = partition.executor.lock();
    all.push_back(executor == nullptr ? T{} : ((*executor).*tell)());
  }
  return all;
}

}  // namespace

std::vector<std::vector<runtime::RoadTaken>> roads(const Ledger& ledger) {
  return of_executors(ledger, &runtime::Executor::roads);
}

std::vector<runtime::ChainsTaken> chains(const Ledger& ledger) {
  return of_executors(ledger, &runtime::Executor::chains);
}

std::vector<runtime::BundlesTaken> bundles(const Ledger& ledger) {
  return of_executors(ledger, &runtime::Executor::bundles);
}

std::vector<runtime::ListTaken> command_lists(const Ledger& ledger) {
  return of_executors(ledger, &runtime::Executor::command_list);
}

std::vector<std::optional<Reused>> reused(const Ledger& ledger) {
  std::vector<std::optional<Reused>> all;
  for (const Live& partition : ledger.partitions()) {
    const auto executor = partition.executor.lock();
    all.emplace_back();
    if (executor == nullptr || executor->plan().reuse.state < 0) continue;
    all.back() = Reused{executor->plan().reuse.launches, executor->reused()};
  }
  return all;
}

std::vector<Live::Held> graphs(const Ledger& ledger) {
  std::vector<Live::Held> graphs;
  for (const Live& partition : ledger.partitions()) {
    graphs.push_back(
        {partition.executor.lock(), partition.graph.lock(), partition.original.lock()});
  }
  return graphs;
}

double device_time(const Ledger& ledger, int runs, int node) {
  double seconds = 0;
  for (const auto& executor : executors_to_time(ledger))
    seconds += executor->device_time(runs, node);
  return seconds;
}

std::vector<LaunchTime> launch_times(const Ledger& ledger, int rounds) {
  std::vector<LaunchTime> times;
  for (const auto& executor : executors_to_time(ledger)) {
    const runtime::Executor::Times measured = executor->launch_times(rounds);
    const plan::Plan& plan = executor->plan();
    std::size_t next = 0;
    for (std::size_t i = 0; i <= plan.run.size(); ++i) {
      for (; next < plan.moves.size() && plan.moves[next].start == static_cast<int>(i); ++next) {
        const plan::Move& move = plan.moves[next];
        const auto finish = static_cast<std::size_t>(move.finish);
        times.push_back({finish < plan.run.size() ? plan.run[finish].node : -1,
                         move.kind == plan::Move::Kind::kOut ? "SWAP_OUT" : "SWAP_IN", "",
                         plan.buffers[uz(move.buffer)].name, measured.moves[next], move.bytes});
      }
      if (i == plan.run.size()) break;
      const plan::Step& step = plan.run[i];
      times.push_back(
          {step.node, step.op, step.candidate, step.launch.entry, measured.launches[i], 0});
    }
  }
  return times;
}

Profile profile_of(const Ledger& ledger) {
  const Ledger::Shown shown = ledger.shown();
  Profile profile;
  std::vector<std::shared_ptr<runtime::Recorder>> recorders;
  std::map<int, ops::Work> work;
  for (const Live& partition : shown.partitions) recorders.push_back(partition.recorder);
  for (const NodeReport& node : shown.report.nodes) {
    if (node.candidate.empty()) continue;
    profile.nodes.push_back(node);
    work[node.index] = node.work;
  }
  std::map<std::uint64_t, int> partitions;  // number of partitions that recorded an inference
  int all_of_them = 0;
  // Reading events takes time, so it is done first. The last partition is read before the others:
  // an inference that has reached it has passed them all.
  for (const auto& recorder : recorders) {
    if (recorder != nullptr) recorder->settle();
  }
  for (std::size_t i = recorders.size(); i-- > 0;) {
    if (recorders[i] == nullptr) continue;
    const std::vector<runtime::InferenceTimes> recorded = recorders[i]->times();
    if (const std::string problem = recorders[i]->problem(); !problem.empty())
      profile.notes.assign(1, problem);
    ++all_of_them;
    for (const runtime::InferenceTimes& inference : recorded) {
      ++partitions[inference.number];
      profile.inferences.push_back({inference.number, static_cast<int>(i), inference.host,
                                    profiled(inference.commands, recorders[i]->commands(), work)});
    }
  }
  std::vector<ProfiledInference>& all = profile.inferences;
  // An inference in progress has passed only some partitions; partitions with many commands keep
  // fewer inferences.
  const auto is_part = [&](const ProfiledInference& i) {
    return partitions[i.number] < all_of_them;
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_part), all.end());
  std::sort(all.begin(), all.end(), [](const ProfiledInference& a, const ProfiledInference& b) {
    return std::pair(a.number, a.partition) < std::pair(b.number, b.partition);
  });
  profile.recorders.assign(recorders.begin(), recorders.end());
  return profile;
}

void reset_profile(const Ledger& ledger, int in_a_row) {
  for (const Live& partition : ledger.partitions()) {
    if (partition.recorder == nullptr) continue;
    partition.recorder->clear();
    partition.recorder->ask(in_a_row);
  }
}

std::vector<PartitionMemory> memory_map(const Ledger& ledger) {
  std::vector<PartitionMemory> map;
  for (const auto& executor : live_executors(ledger)) map.push_back(memory_of(executor->plan()));
  return map;
}

std::vector<runtime::ProgramUse> programs(const Ledger& ledger) {
  std::set<runtime::ProgramUse> uses;
  for (const auto& executor : live_executors(ledger)) {
    for (runtime::ProgramUse& use : runtime::programs(executor->plan()))
      uses.insert(std::move(use));
  }
  return {uses.begin(), uses.end()};
}

}  // namespace clgpu::delegate
