// What a state knows of the last inferences.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "delegate/build/state.hpp"

namespace clgpu::delegate {
namespace {

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

}  // namespace

Profile State::profile() const {
  Profile profile;
  std::vector<std::shared_ptr<runtime::Recorder>> recorders;
  std::map<int, ops::Work> work;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Live& partition : live_) recorders.push_back(partition.recorder);
    for (const NodeReport& node : report_.nodes) {
      if (node.candidate.empty()) continue;
      profile.nodes.push_back(node);
      work[node.index] = node.work;
    }
  }
  std::map<std::uint64_t, int> partitions;  // that have an inference
  int all_of_them = 0;
  // Events are read first, which takes its time, and the last partition before the others: what has
  // been through it has been through them.
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
  // One under way has been through some of them only; those with many commands keep fewer.
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

void State::reset_profile(int in_a_row) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Live& partition : live_) {
    if (partition.recorder == nullptr) continue;
    partition.recorder->clear();
    partition.recorder->ask(in_a_row);
  }
}

}  // namespace clgpu::delegate
