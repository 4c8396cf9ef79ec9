#include "delegate/building/builder.hpp"

#include <algorithm>

#include "base/byte_size.hpp"
#include "base/join.hpp"
#include "runtime/measure/probe.hpp"

namespace clgpu::delegate {

plan::PlanOptions Builder::plan_options(std::int64_t budget, Level level) const {
  const Options& options = target_.options;
  plan::PlanOptions plan_options = options.plan;
  plan_options.memory_budget = budget;
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
  return plan::fit(graph, target_.device(), plan_options(budget, Level::kAsAsked),
                   engines_.broken());
}

std::int64_t Builder::smallest_budget(const ir::Graph& graph) const {
  try {
    return plan(graph, 1).plan.peak_bytes;
  } catch (const plan::BudgetError& error) {
    return error.smallest();
  }
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
  if (limits.groups == 0) return std::nullopt;
  if (chain == Chain::kOn) limits.waves = SIZE_MAX / limits.items / limits.groups;
  return runtime::Chaining{limits, chain == Chain::kAuto, lasts};
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

Built Builder::build(const ir::Graph& graph, std::int64_t budget,
                     const std::shared_ptr<runtime::Pool>& pool, Level level, bool lasts,
                     const Carriers* carriers) const {
  plan::PlanOptions wanted = plan_options(budget, level);
  std::string failures;     // of allocations
  std::int64_t failed = 0;  // peak bytes of the last plan whose allocations failed
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
    try {
      Built built{std::make_shared<const ir::Graph>(std::move(fitted.graph)),
                  std::make_shared<runtime::Executor>(
                      target_.context, target_.store, std::move(fitted.plan),
                      target_.options.warm_up, pool, target_.options.profile, chaining(lasts),
                      /*bundles=*/lasts && target_.options.chain != Chain::kOff, listing(),
                      carriers == nullptr ? nullptr : carriers->set(),
                      carriers == nullptr ? nullptr : carriers->weights())};
      engines_.add_built(built.executor->plan(), learned,
                         failures.empty()
                             ? ""
                             : "the device did not have the memory that it promised: " + failures);
      return built;
    } catch (const cl::OpenCLError& error) {
      if (!error.out_of_memory()) throw;
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
