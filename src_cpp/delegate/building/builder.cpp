#include "delegate/building/builder.hpp"

#include <algorithm>

#include "base/byte_size.hpp"
#include "base/join.hpp"
#include "runtime/measure/probe.hpp"
#include "runtime/run/host_runner.hpp"

namespace clgpu::delegate {
namespace {

void count_inner(plan::Plan& plan, std::int64_t bytes) {
  plan.inner_bytes = bytes;
  plan.peak_bytes += bytes;
}

std::string too_small(std::int64_t budget, std::int64_t smallest) {
  return "no plan fits into the memory budget of " + byte_size(budget) +
         "; the smallest feasible budget is " + byte_size(smallest);
}

}  // namespace

plan::PlanOptions Builder::plan_options(std::int64_t budget, Level level) const {
  const Options& options = target_.options;
  plan::PlanOptions plan_options = options.plan;
  plan_options.memory_budget = budget;
  plan_options.side_by_side =
      options.chain != Chain::kOff && budget == 0 && target_.device().is(GpuFamily::kNvidia);
  plan_options.exact_sums = level >= Level::kExactSums;
  if (options.verify != kVerifyOff) {
    plan_options.distrusted = [this](const std::string& family, const kernel::Candidate& c) {
      return engines_.distrusted(family, c);
    };
  }
  // Exact sums exclude some winners, but these still work.
  if (options.tuning != Tuning::kOff && level != Level::kExactSums) {
    plan_options.tuned = [this](const std::string& signature) {
      return engines_.contest(signature).winner;
    };
  }
  return plan_options;
}

plan::Fitted Builder::plan(const ir::Graph& graph, std::int64_t budget) const {
  std::int64_t inner = 0;
  for (const ir::Node& node : graph.nodes) {
    for (const auto& run : node.graphs)
      inner += budget > 0 ? smallest_budget(*run) : plan(*run, 0).plan.peak_bytes;
  }
  const std::int64_t left = budget > 0 ? std::max<std::int64_t>(budget - inner, 1) : 0;
  try {
    plan::Fitted fitted =
        plan::fit(graph, target_.device(), plan_options(left, Level::kAsAsked), engines_.broken());
    count_inner(fitted.plan, inner);
    return fitted;
  } catch (const plan::BudgetError& error) {
    if (inner == 0) throw;
    throw plan::BudgetError(error.smallest() + inner, too_small(budget, error.smallest() + inner));
  }
}

std::int64_t Builder::smallest_budget(const ir::Graph& graph) const {
  try {
    return plan(graph, 1).plan.peak_bytes;
  } catch (const plan::BudgetError& error) {
    return error.smallest();
  }
}

Builder::Inner Builder::build_inner(const ir::Graph& graph, std::int64_t budget, Level level,
                                    bool lasts) const {
  Inner inner;
  std::int64_t more = 0;  // than the least that all need
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                               [](const ir::Node& node) { return !node.graphs.empty(); });
  if (any && budget > 0) {
    const std::int64_t least = smallest_budget(graph);
    if (least > budget) throw plan::BudgetError(least, too_small(budget, least));
    more = budget - least;
  }
  for (const ir::Node& node : graph.nodes) {
    if (node.graphs.empty()) continue;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < node.inputs.size() + node.outputs.size(); ++i)
      names.push_back("value " + std::to_string(i) + " of " + node.op + " (node " +
                      std::to_string(node.tflite_index) + ")");
    const Carriers carriers(target_, std::move(names));
    const auto pool = std::make_shared<runtime::Pool>(target_.context);
    std::vector<std::shared_ptr<runtime::Executor>> executors;
    for (const auto& run : node.graphs) {
      const std::int64_t least = budget > 0 ? smallest_budget(*run) : 0;
      executors.push_back(build(*run, budget > 0 ? least + more : 0, pool, level, lasts, &carriers,
                                /*records=*/false)
                              .executor);
      executors.back()->save_programs();
      const std::int64_t bytes = executors.back()->plan().peak_bytes;
      more = std::max<std::int64_t>(more - std::max<std::int64_t>(bytes - least, 0), 0);
      inner.bytes += bytes;
    }
    inner.runners[node.graphs.front().get()] = std::make_shared<runtime::HostRunner>(
        target_.context, node.kind->runs, carriers.set(), std::move(executors));
  }
  return inner;
}

std::shared_ptr<runtime::Pool> Builder::pool() const {
  return target_.options.pool_of_process ? runtime::Pool::of_process(target_.context)
                                         : std::make_shared<runtime::Pool>(target_.context);
}

std::optional<runtime::Chaining> Builder::chaining(bool lasts) const {
  const Chain chain = target_.options.chain;
  const bool wanted =
      chain == Chain::kOn || (chain == Chain::kAuto && target_.device().is(GpuFamily::kNvidia));
  if (!wanted) return std::nullopt;
  plan::ChainLimits limits = runtime::chain_limits(*target_.context, *target_.store);
  if (chain == Chain::kOn && limits.groups > 0)
    limits.waves = SIZE_MAX / limits.items / limits.groups;
  const bool measured = chain == Chain::kAuto || runtime::chain_judgement().measures;
  return runtime::Chaining{limits, measured, lasts};
}

// On CPUs a launch costs about as much as its part of a list.
runtime::Listing Builder::listing() const {
  switch (target_.options.command_list) {
    case CommandList::kOn:
      return runtime::Listing::kAlways;
    case CommandList::kAuto:
      return target_.device().is_cpu() ? runtime::Listing::kNever : runtime::Listing::kIfFaster;
    default:
      return runtime::Listing::kNever;
  }
}

// Where they were measured.
bool Builder::bundles() const {
  const DeviceInfo& device = target_.device();
  return target_.options.chain != Chain::kOff && (device.is_cpu() || device.is(GpuFamily::kNvidia));
}

Built Builder::build(const ir::Graph& graph, std::int64_t budget,
                     const std::shared_ptr<runtime::Pool>& pool, Level level, bool lasts,
                     const Carriers* carriers, bool records, const std::function<bool()>& make_room,
                     const Excess& excess) const {
  const Inner inner = build_inner(graph, budget, level, lasts);
  plan::PlanOptions wanted =
      plan_options(budget > 0 ? std::max<std::int64_t>(budget - inner.bytes, 1) : 0, level);
  std::string failures;     // of allocations
  std::int64_t failed = 0;  // peak bytes of the last plan whose allocations failed
  std::int64_t steps = 1;   // doubled with each plan that holds too much
  plan::Broken known = engines_.broken();
  // Kept only if a build without these succeeds: if nothing can be built, all may work later.
  plan::Broken learned;
  while (true) {
    plan::Fitted fitted;
    try {
      fitted = plan::fit(graph, target_.device(), wanted, known);
      if (wanted.tuned && engines_.slower_together(fitted.plan)) {
        // No winners, but signatures, so that they can be measured again.
        wanted.tuned = [](const std::string&) { return std::string(); };
        fitted = plan::fit(graph, target_.device(), wanted, known);
      }
    } catch (const plan::NoCandidate&) {
      engines_.add_failed(learned);
      throw;
    } catch (const plan::BudgetError& error) {
      if (failures.empty()) throw;
      throw DeviceError(failures + "; no plan needs less than " + byte_size(error.smallest()));
    }
    const std::int64_t peak = fitted.plan.peak_bytes;
    // The planner finds no smaller plan, or the plan needs no device memory at all.
    if (!failures.empty() && (peak > wanted.memory_budget || peak >= failed)) {
      throw DeviceError(failures);
    }
    const std::int64_t own = fitted.plan.peak_bytes;
    count_inner(fitted.plan, inner.bytes);
    if (const std::int64_t over = excess == nullptr ? 0 : excess(fitted.plan); over > 0) {
      // What it shares with others is not counted twice, so its own peak does not tell.
      wanted.memory_budget = std::max<std::int64_t>(own - over * steps, 1);
      if (own <= 1) throw plan::BudgetError(own, too_small(budget, own + over));
      steps *= 2;
      continue;
    }
    runtime::GraphRunners runners;
    for (const plan::Step& step : fitted.plan.run) {
      if (!step.launch.runs_graphs) continue;
      const ir::Node& node = fitted.graph.nodes.at(static_cast<std::size_t>(step.position));
      runners[step.position] = inner.runners.at(node.graphs.front().get());
    }
    try {
      Built built{
          std::make_shared<const ir::Graph>(std::move(fitted.graph)),
          std::make_shared<runtime::Executor>(
              target_.context, target_.store, std::move(fitted.plan), target_.options.warm_up, pool,
              records && target_.options.profile, chaining(lasts), lasts && bundles(), listing(),
              carriers == nullptr ? nullptr : carriers->set(),
              carriers == nullptr ? nullptr : carriers->weights(), std::move(runners))};
      engines_.add_built(built.executor->plan(), learned,
                         failures.empty()
                             ? ""
                             : "the device did not have the memory that it promised: " + failures);
      return built;
    } catch (const cl::OpenCLError& error) {
      if (!error.out_of_memory()) throw;
      if (make_room != nullptr && make_room()) continue;
      // The device has less memory than it reports, or other processes use it.
      append_item(failures, "a plan of " + byte_size(peak) + " failed: " + error.what(), "; ");
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

runtime::Alone Builder::run_alone(const ir::Graph& graph, std::size_t position,
                                  const std::string& candidate, Level level,
                                  const runtime::InputOf& input) const {
  plan::PlanOptions all = plan_options(0, level);
  all.distrusted = [](const std::string&, const kernel::Candidate&) { return std::string(); };
  return runtime::run_alone(target_.context, target_.store, target_.device(), graph, position,
                            candidate, all, engines_.broken(), input);
}

}  // namespace clgpu::delegate
