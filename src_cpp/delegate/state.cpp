#include "delegate/state.hpp"

namespace clgpu::delegate {

std::unique_ptr<runtime::Executor> State::build(const ir::Graph& graph) {
  const cl::Counters before = cl::counters();
  while (true) {
    plan::Broken broken;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      broken = broken_;
    }
    plan::Plan plan = plan::make_plan(graph, device(), options.plan, broken);
    try {
      auto executor = std::make_unique<runtime::Executor>(context, std::move(plan), options.warm_up);
      count_load(cl::counters() - before);
      return executor;
    } catch (const runtime::CandidateFailure& failure) {
      const std::lock_guard<std::mutex> lock(mutex_);
      const bool is_new = broken_.emplace(std::pair(failure.family(), failure.candidate()), failure.what()).second;
      if (!is_new) throw InternalError("a candidate that was left out was planned again: " + std::string(failure.what()));
    }
  }
}

Report State::report() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Report report = report_;
  for (const auto& [key, why] : broken_) {
    report.notes.push_back("kernel " + key.first + "/" + key.second + " does not work on this device: " + why);
  }
  return report;
}

void State::set_report(Report report) {
  const std::lock_guard<std::mutex> lock(mutex_);
  report_ = std::move(report);
}

void State::set_partition(int partition, const PartitionReport& partition_report, const plan::Plan& plan) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto index = static_cast<std::size_t>(partition);
  if (index >= report_.partitions.size()) return;
  report_.partitions[index] = partition_report;
  for (const plan::Choice& choice : plan.choices) {
    for (NodeReport& node : report_.nodes) {
      if (node.index != choice.node) continue;
      node.candidate = choice.candidate;
      node.candidates = choice.candidates;
    }
  }
}

Stats State::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void State::count_invoke(const cl::Counters& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.invokes;
  stats_.total += cost;
  stats_.last_invoke = cost;
}

void State::count_load(const cl::Counters& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.load += cost;
}

}  // namespace clgpu::delegate
