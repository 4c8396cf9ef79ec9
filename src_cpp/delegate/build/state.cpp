#include "delegate/build/state.hpp"

#include <algorithm>
#include <cmath>

#include "base/byte_size.hpp"
#include "base/index.hpp"

namespace clgpu::delegate {
namespace {

thread_local std::uint64_t last_report_here = 0;

const char* name_of(plan::Choice::Origin origin) {
  switch (origin) {
    case plan::Choice::Origin::kForced:
      return "forced";
    case plan::Choice::Origin::kTuned:
      return "tuned";
    default:
      return "default";
  }
}

}  // namespace

Built State::build(const ir::Graph& graph, std::int64_t budget,
                   const std::shared_ptr<runtime::Pool>& pool, Level level) {
  const cl::Counters before = cl::counters();
  Built built = plan_and_build(graph, budget, pool, level);
  if (options.tuning == Tuning::kExhaustive) {
    std::vector<Tunable> tunables;
    collect(built.graph, *built.executor, false, tunables);
    if (std::any_of(tunables.begin(), tunables.end(), [](const Tunable& t) { return t.pending; })) {
      built.executor.reset();  // makes room
      measure(tunables, INFINITY, nullptr);
      built = plan_and_build(graph, budget, pool, level);
    }
  }
  built.executor->save_programs();
  count_load(cl::counters() - before);
  return built;
}

plan::PlanOptions State::plan_options(std::int64_t budget, Level level) const {
  plan::PlanOptions plan_options = options.plan;
  plan_options.memory_budget = budget;
  plan_options.exact_sums = level >= Level::kExactSums;
  if (options.verify != kVerifyOff) {
    plan_options.distrusted = [this](const std::string& family, const kernel::Candidate& c) {
      return distrusted(family, c);
    };
  }
  // With exact sums some winners are left out, which does not mean that they work no more.
  if (options.tuning != Tuning::kOff && level != Level::kExactSums) {
    plan_options.tuned = [this](const std::string& signature) { return record(signature).winner; };
  }
  return plan_options;
}

std::int64_t State::smallest_budget(const ir::Graph& graph) const {
  try {
    return plan::fit(graph, device(), plan_options(1), broken()).plan.peak_bytes;
  } catch (const plan::BudgetError& error) {
    return error.smallest();
  }
}

std::shared_ptr<runtime::Pool> State::pool() const {
  return options.pool_of_process ? runtime::Pool::of_process(context)
                                 : std::make_shared<runtime::Pool>(context);
}

Built State::plan_and_build(const ir::Graph& graph, std::int64_t budget,
                            const std::shared_ptr<runtime::Pool>& pool, Level level) {
  plan::PlanOptions wanted = plan_options(budget, level);
  std::string failures;     // of allocations
  std::int64_t failed = 0;  // peak bytes of the last plan that failed so
  plan::Broken known = broken();
  // Kept when something has been built without these: where nothing can be built, all may work
  // later.
  plan::Broken learned;
  while (true) {
    plan::Fitted fitted;
    try {
      fitted = plan::fit(graph, device(), wanted, known);
    } catch (const plan::NoCandidate&) {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [engine, fault] : learned) failed_.insert_or_assign(engine, fault);
      throw;
    } catch (const plan::BudgetError& error) {
      if (failures.empty()) throw;
      throw DeviceError(failures + "; no plan needs less than " + byte_size(error.smallest()));
    }
    const std::int64_t peak = fitted.plan.peak_bytes;
    // No smaller one is to be had, if there is device memory in the plan at all.
    if (!failures.empty() && (peak > wanted.memory_budget || peak >= failed)) {
      throw DeviceError(failures);
    }
    try {
      Built built{std::make_shared<const ir::Graph>(std::move(fitted.graph)),
                  std::make_shared<runtime::Executor>(context, store, std::move(fitted.plan),
                                                      options.warm_up, pool, options.profile)};
      drop_records(built.executor->plan());
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!failures.empty())
        notes_.insert("the device did not have the memory that it promised: " + failures);
      for (const plan::Choice& choice : built.executor->plan().choices) {
        for (const std::string& candidate : choice.candidates)
          failed_.erase({choice.family, candidate});
      }
      for (const auto& [engine, fault] : learned) {
        // Another thread may have been first.
        plan::learn(broken_, engine.first, engine.second, fault);
      }
      return built;
    } catch (const cl::OpenCLError& error) {
      if (!error.out_of_memory()) throw;
      // The device has less than it says, or others use it.
      failures += (failures.empty() ? "" : "; ") + std::string("a plan of ") + byte_size(peak) +
                  " failed: " + error.what();
      wanted.memory_budget = std::max<std::int64_t>(peak / 10 * 7, 1);
      failed = peak;
    } catch (const runtime::CandidateFailure& failure) {
      if (!failure.learn(known)) {
        throw InternalError("a candidate that was left out was planned again: " +
                            std::string(failure.what()));
      }
      failure.learn(learned);
    }
  }
}

plan::Broken State::broken() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return broken_;
}

Report State::report() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Report report = report_;
  for (const std::string& note : device_.notes) report.notes.push_back(note);
  if (options.precision == passes::Precision::kTf32 && !device().mma_tf32) {
    report.notes.push_back("precision tf32 is fp32 here: the device has no TF32 products");
  }
  plan::Broken broken = failed_;
  for (const auto& [key, fault] : broken_) broken.insert_or_assign(key, fault);
  for (const auto& [key, fault] : broken) {
    report.faults.push_back(
        {key.first + "/" + key.second, fault.group == 0 ? "fails" : "group", fault.why});
    report.notes.push_back("kernel " + report.faults.back().kernel +
                           (fault.group == 0 ? " does not work on this device: "
                                             : " is made for smaller work-groups or left out: ") +
                           fault.why);
  }
  for (std::size_t i = 0; i < report.partitions.size(); ++i) {
    if (const std::string& why = report.partitions[i].on_cpu; !why.empty())
      report.notes.push_back("partition " + std::to_string(i) +
                             " is computed by the CPU's kernels for now: " + why);
  }
  for (const auto& [engine, wrong] : engines_) {
    if (wrong.why.empty()) continue;
    report.faults.push_back({wrong.name, "numbers", wrong.why});
    report.notes.push_back("kernel " + wrong.name + " is left out: it " + wrong.why);
  }
  for (const std::string& note : store->notes()) report.notes.push_back(note);
  report.notes.insert(report.notes.end(), notes_.begin(), notes_.end());
  report.failure = failure_;
  return report;
}

void State::fail(std::optional<Failure> failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failure_ = std::move(failure);
}

std::uint64_t State::set_report(Report report) {
  const std::lock_guard<std::mutex> lock(mutex_);
  report_ = std::move(report);
  reasons_.clear();
  for (const NodeReport& node : report_.nodes) reasons_.push_back(node.reason);
  live_.assign(report_.partitions.size(), {});
  return last_report_here = ++report_number_;
}

std::uint64_t State::last_report() { return last_report_here; }

void State::set_partition(std::uint64_t number, int partition,
                          const PartitionReport& partition_report,
                          const std::shared_ptr<const ir::Graph>& graph,
                          const std::shared_ptr<runtime::Executor>& executor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (number != report_number_) return;
  report_.partitions.at(uz(partition)) = partition_report;
  live_.at(uz(partition)) = {executor, graph, executor == nullptr ? nullptr : executor->recorder()};
  if (executor == nullptr) {
    for (NodeReport& node : report_.nodes) {
      if (node.partition != partition) continue;
      node.reason = "computed by the CPU's kernels: " + partition_report.on_cpu;
      node.family = node.candidate = node.chosen = "";
      node.work = {};
    }
    return;
  }
  std::map<int, const plan::Choice*> choices;
  std::map<int, ops::Work> work;  // of all its bands
  for (const plan::Choice& choice : executor->plan().choices) {
    // Bands of a node are computed one by one, and joined.
    const plan::Choice*& most = choices[choice.node];
    if (most == nullptr || choice.work.flops >= most->work.flops) most = &choice;
    work[choice.node] += choice.work;
  }
  std::set<int> views;
  for (const ir::Node& node : graph->nodes) {
    if (node.kind->is_view) views.insert(node.tflite_index);
  }
  for (std::size_t i = 0; i < report_.nodes.size(); ++i) {
    NodeReport& node = report_.nodes[i];
    if (node.partition != partition) continue;
    // Other shapes or types may have led to something else.
    node.reason = reasons_[i];
    node.family = node.candidate = node.chosen = "";
    node.candidates.clear();
    node.refused.clear();
    node.adds_halves = node.tensor_cores = false;
    node.work = work[node.index];
    if (const auto choice = choices.find(node.index); choice != choices.end()) {
      node.family = choice->second->family;
      node.candidate = choice->second->candidate;
      node.adds_halves = choice->second->adds_halves;
      node.tensor_cores = choice->second->tensor_cores;
      node.chosen = name_of(choice->second->origin);
      node.candidates = choice->second->candidates;
      node.refused = choice->second->refused;
    } else if (const auto into = graph->fused.find(node.index); into != graph->fused.end()) {
      node.reason = "fused into node " + std::to_string(into->second);
    } else if (views.count(node.index) != 0) {
      node.reason = "a view: shares the memory of its input";
    }
  }
}

Stats State::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

std::vector<std::vector<runtime::RoadTaken>> State::roads() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::vector<runtime::RoadTaken>> roads;
  for (const Live& partition : live_) {
    const auto executor = partition.executor.lock();
    roads.push_back(executor == nullptr ? std::vector<runtime::RoadTaken>{} : executor->roads());
  }
  return roads;
}

void State::count_invoke(Session& session, bool first, const cl::Counters& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (first) {
    ++stats_.invokes;
    session.invoke = {};
  }
  session.invoke += cost;
  stats_.total += cost;
  stats_.last_invoke = session.invoke;
}

void State::count_load(const cl::Counters& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.load += cost;
}

std::vector<std::shared_ptr<runtime::Executor>> State::live_executors() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<runtime::Executor>> live;
  for (const Live& partition : live_) {
    if (auto executor = partition.executor.lock()) live.push_back(std::move(executor));
  }
  return live;
}

std::vector<std::shared_ptr<runtime::Executor>> State::executors() const {
  auto live = live_executors();
  if (live.empty()) {
    throw Error(
        "nothing is on the device: timing needs an interpreter whose tensors are allocated");
  }
  return live;
}

double State::device_time(int runs, int node) const {
  double seconds = 0;
  for (const auto& executor : executors()) seconds += executor->device_time(runs, node);
  return seconds;
}

std::vector<LaunchTime> State::launch_times(int rounds) const {
  std::vector<LaunchTime> times;
  for (const auto& executor : executors()) {
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

}  // namespace clgpu::delegate
