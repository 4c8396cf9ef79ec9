#include "plan/chains.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/index.hpp"
#include "kernel/sources.hpp"
#include "plan/conflicts.hpp"

namespace clgpu::plan {
namespace {

/// Work-items of a work-group in the largest chain that a launch may be a stage of.
std::size_t most_items_of(const kernel::Launch& launch, const ChainLimits& limits) {
  return launch.slim ? std::max(limits.items, limits.slim_items) : limits.items;
}

/// The launch as a stage without its buffers; none if it must stay a launch.
std::optional<kernel::Stage> stage_of(const kernel::Launch& launch, std::size_t local_bytes,
                                      const ChainLimits& limits) {
  if (launch.runs_graphs || !kernel::may_be_member(launch)) return std::nullopt;
  kernel::Stage stage;
  stage.launch = &launch;
  stage.is_free = kernel::any_work_group(launch.file, launch.entry);
  const std::size_t all_items = kernel::groups_of(launch) * kernel::group_items(launch);
  if (stage.is_free && all_items > limits.waves * limits.groups * limits.items) return std::nullopt;
  if (stage.is_free) return stage;
  constexpr std::size_t kLine = 128;  // that NVIDIA's driver adds
  constexpr std::size_t kLanes = 32, kBarriers = 15;
  const std::size_t items = kernel::group_items(launch), most_items = most_items_of(launch, limits);
  const std::int64_t arrays_bytes = kernel::local_bytes_of(launch.file, local_bytes);
  if (arrays_bytes < 0) return std::nullopt;
  stage.local_bytes = uz(arrays_bytes);
  if (kernel::local_arrays(launch.file) == 1 && stage.local_bytes == limits.local_bytes + kLine)
    stage.local_bytes -= kLine;
  if (items > most_items || stage.local_bytes > limits.local_bytes) return std::nullopt;
  if (limits.nvidia && items % kLanes != 0) return std::nullopt;
  std::size_t slots = limits.nvidia ? std::min(most_items / items, kBarriers) : 1;
  if (stage.local_bytes > 0) slots = std::min(slots, limits.local_bytes / stage.local_bytes);
  if (kernel::groups_of(launch) > limits.waves * limits.groups * slots) return std::nullopt;
  // A slot more is of no use if each takes one work-group anyway.
  slots = std::min(slots, (kernel::groups_of(launch) + limits.groups - 1) / limits.groups);
  stage.slots = static_cast<int>(slots);
  return stage;
}

/// Carried tensors of which launches change a part in place.
std::set<int> updated_in_place(const Plan& plan) {
  std::set<int> buffers;
  for (const Carry& c : plan.carries) {
    if (c.input >= 0 && c.result == c.buffer) buffers.insert(c.buffer);
  }
  return buffers;
}

bool writes_one_of(const Step& step, const std::set<int>& buffers) {
  const std::vector<Access> uses = accesses_of(step);
  return std::any_of(uses.begin(), uses.end(), [&](const Access& use) {
    return use.writes && buffers.count(use.buffer) > 0;
  });
}

/// What the kernel of a step reads before OPERANDS_READY.
std::vector<Access> early_accesses(const Step& step) {
  std::vector<Access> uses;
  for_operands(step, [&](int buffer, const kernel::Operand& operand) {
    if (operand.early) uses.push_back({buffer, false});
  });
  return uses;
}

/// Builds one chain at a time.
class Builder {
 public:
  Builder(const Plan& plan, const ChainLimits& limits) : plan_(plan), limits_(limits) {}

  /// False if the chain cannot take another stage. `may_wait_within`: its function may have
  /// OPERANDS_READY.
  bool add(const Step& step, kernel::Stage stage, bool may_wait_within) {
    std::vector<int> buffers = chain_.buffers;
    const std::vector<Access> uses = accesses_of(step);
    for (const Access& use : uses) stage.buffers.push_back(number_of(use.buffer, buffers));
    if (buffers.size() > limits_.buffers || chain_.kernel.stages.size() == limits_.stages)
      return false;
    // Without barriers of a part of a work-group, the whole one computes that of a stage.
    const std::size_t items = kernel::group_items(*stage.launch);
    const bool decides = !limits_.nvidia && !stage.is_free;
    if (decides && items_ != 0 && items_ != items) return false;
    if (limits_.nvidia && !stage.is_free) {
      const bool narrow = !stage.launch->slim, wide = items > limits_.items;
      if ((narrow && wide_) || (wide && narrow_)) return false;
      narrow_ = narrow_ || narrow;
      wide_ = wide_ || wide;
      has_groups_ = true;
    }
    if (decides) items_ = items;
    chain_.buffers = std::move(buffers);
    stage.waits = conflict(plan_, open_, uses);
    if (stage.waits) {
      // What stages before the last wait wrote is there already.
      const std::vector<Access> early = early_accesses(step);
      stage.waits_within = may_wait_within && !early.empty() && !conflict(plan_, open_, early);
      open_.clear();
      start_ = 0;
    }
    stage.start = start_ % limits_.groups;
    start_ += kernel::groups_of(*stage.launch);
    open_.insert(open_.end(), uses.begin(), uses.end());
    chain_.kernel.stages.push_back(std::move(stage));
    return true;
  }

  /// Ends the chain; the next one begins at step `first`.
  void end(int first, std::vector<Chain>& chains) {
    chain_.kernel.groups = limits_.groups;
    const bool is_slim = has_groups_ && !narrow_ && limits_.slim_items > limits_.items;
    chain_.kernel.items = items_ != 0 ? items_ : is_slim ? limits_.slim_items : limits_.items;
    for (kernel::Stage& stage : chain_.kernel.stages) {
      const std::size_t most = chain_.kernel.items / kernel::group_items(*stage.launch);
      if (!stage.is_free)
        stage.slots = std::min(stage.slots, static_cast<int>(std::max<std::size_t>(most, 1)));
      chain_.kernel.local_bytes =
          std::max(chain_.kernel.local_bytes, stage.local_bytes * uz(stage.slots));
    }
    chain_.kernel.nvidia = limits_.nvidia;
    chain_.kernel.buffers = static_cast<int>(chain_.buffers.size());
    if (chain_.kernel.stages.size() > 1) chains.push_back(std::move(chain_));
    chain_ = {};
    chain_.first = first;
    open_.clear();
    start_ = items_ = 0;
    narrow_ = wide_ = has_groups_ = false;
  }

 private:
  const Plan& plan_;
  const ChainLimits& limits_;
  Chain chain_;
  std::vector<Access> open_;  // of the stages since the last wait
  std::size_t start_ = 0;     // work-groups of the stages since then
  std::size_t items_ = 0;     // that stages demand of a work-group; 0: none does
  // Whether there are stages that are not slim, stages that need more items than those have, any
  // that are not free.
  bool narrow_ = false, wide_ = false, has_groups_ = false;
};

}  // namespace

std::vector<Chain> find_chains(const Plan& plan, const std::vector<std::size_t>& local_bytes,
                               const ChainLimits& limits, const std::set<int>& cuts) {
  std::vector<Chain> chains;
  if (!plan.moves.empty()) return chains;
  Builder builder(plan, limits);
  const std::set<int> updated = updated_in_place(plan);
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const Step& step = plan.run[i];
    auto stage = stage_of(step.launch, local_bytes[i], limits);
    if (stage && writes_one_of(step, updated)) {
      stage->is_lasting = true;
      if (!stage->is_free && !(limits.nvidia && step.launch.asks_to_keep)) stage.reset();
    }
    // A predicate is read at the beginning of the function.
    const bool may_wait_within =
        limits.nvidia && stage && !stage->is_free && !step.launch.predicated;
    const bool same = i == 0 || step.launch.build_flags == plan.run[i - 1].launch.build_flags;
    const bool is_cut = cuts.count(static_cast<int>(i)) > 0;
    if (!same || is_cut) builder.end(static_cast<int>(i), chains);
    if (!stage) {
      builder.end(static_cast<int>(i) + 1, chains);
    } else if (!builder.add(step, *stage, may_wait_within)) {
      builder.end(static_cast<int>(i), chains);
      if (!builder.add(step, *stage, may_wait_within)) builder.end(static_cast<int>(i) + 1, chains);
    }
  }
  builder.end(static_cast<int>(plan.run.size()), chains);
  // A launch does not know whether a chain before it gave up.
  int last = -1;  // launch that updates a carried tensor
  for (int i = 0; i < static_cast<int>(plan.run.size()); ++i) {
    const bool is_stage = std::any_of(chains.begin(), chains.end(), [&](const Chain& chain) {
      return chain.first <= i && i < chain.first + static_cast<int>(chain.kernel.stages.size());
    });
    if (!is_stage && writes_one_of(plan.run[uz(i)], updated)) last = i;
  }
  chains.erase(std::remove_if(chains.begin(), chains.end(),
                              [&](const Chain& chain) { return chain.first < last; }),
               chains.end());
  return chains;
}

std::set<int> cuts_by_time(const std::vector<Span>& chains, const std::vector<double>& seconds,
                           double longest) {
  std::set<int> cuts;
  for (const Span& chain : chains) {
    double sum = 0;
    for (int i = chain.first; i < chain.end; ++i) {
      if (i > chain.first && sum + seconds[uz(i)] > longest) {
        cuts.insert(i);
        sum = 0;
      }
      sum += seconds[uz(i)];
    }
  }
  return cuts;
}

}  // namespace clgpu::plan
