// Builds partitions: makes plans that fit into memory, from engines that work on this device.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "delegate/building/carried_sets.hpp"
#include "delegate/building/engine_records.hpp"
#include "delegate/judgement.hpp"
#include "delegate/target.hpp"
#include "ir/graph.hpp"
#include "plan/budget/fit.hpp"
#include "runtime/measure/alone.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::delegate {

/// A built partition: its graph with the current shapes, rewritten to fit into memory.
struct Built {
  std::shared_ptr<const ir::Graph> graph;
  std::shared_ptr<runtime::Executor> executor;
};

/// Bytes by which all that is held with a plan exceeds a budget.
using Excess = std::function<std::int64_t(const plan::Plan& plan)>;

class Builder {
 public:
  Builder(const Target& target, EngineRecords& engines) : target_(target), engines_(engines) {}

  /// Plans and builds a graph with inferred shapes within `budget` bytes of device memory (0: no
  /// limit). Records candidates that fail on this device, and excludes them and distrusted engines.
  /// Chains of launches are compiled only for a plan that `lasts`. `carried` has the tensors that
  /// the graph calls so; null if it has none. If the device has less memory than it reports, plans
  /// for less, unless `make_room` returns that it has freed memory. With `records` and the option
  /// profile, inferences are recorded. A plan with `excess` is made again for less. Throws
  /// plan::NoCandidate when a family has no candidate left, and plan::BudgetError.
  Built build(const ir::Graph& graph, std::int64_t budget,
              const std::shared_ptr<runtime::Pool>& pool, Level level, bool lasts,
              const Carriers* carriers, bool records = true,
              const std::function<bool()>& make_room = nullptr,
              const Excess& excess = nullptr) const;

  /// The plan that build() would make, without building it; throws as build().
  plan::Fitted plan(const ir::Graph& graph, std::int64_t budget) const;

  /// The smallest budget with which build() succeeds for this graph.
  std::int64_t smallest_budget(const ir::Graph& graph) const;

  /// runtime::run_alone as build() would compute the node, with distrusted engines, too.
  runtime::Alone run_alone(const ir::Graph& graph, std::size_t position,
                           const std::string& candidate, Level level,
                           const runtime::InputOf& input) const;

  /// The pool for the arenas of a graph's partitions: a new one, or that of the process.
  std::shared_ptr<runtime::Pool> pool() const;

 private:
  /// By node of a graph: the runners of what it runs, and the sum of their peaks.
  struct Inner {
    std::map<const ir::Graph*, std::shared_ptr<runtime::GraphRunner>> runners;  ///< by first graph
    std::int64_t bytes = 0;
  };
  /// Builds the graphs that nodes run. They get what the budget leaves when everything has the
  /// least that it needs.
  Inner build_inner(const ir::Graph& graph, std::int64_t budget, Level level, bool lasts) const;
  std::optional<runtime::Chaining> chaining(bool lasts) const;
  bool bundles() const;
  runtime::Listing listing() const;
  plan::PlanOptions plan_options(std::int64_t budget, Level level) const;

  const Target& target_;
  EngineRecords& engines_;
};

}  // namespace clgpu::delegate
