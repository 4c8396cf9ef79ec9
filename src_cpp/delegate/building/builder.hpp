// Builds partitions: plans that fit into memory, with the engines that work on this device.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "delegate/building/engine_records.hpp"
#include "delegate/judgement.hpp"
#include "delegate/target.hpp"
#include "ir/graph.hpp"
#include "plan/budget/fit.hpp"
#include "runtime/measure/alone.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::delegate {

/// A partition as it runs: its graph with the shapes of the moment, rewritten to fit into memory.
struct Built {
  std::shared_ptr<const ir::Graph> graph;
  std::shared_ptr<runtime::Executor> executor;
};

class Builder {
 public:
  Builder(const Target& target, EngineRecords& engines) : target_(target), engines_(engines) {}

  /// Plans and builds a graph with inferred shapes within `budget` bytes of device memory (0: what
  /// there is); candidates that fail on this device are remembered and left out, engines that are
  /// distrusted, too. Where the device has less memory than it says, plans for less. Throws
  /// plan::NoCandidate when a family has no candidate left, and plan::BudgetError.
  Built build(const ir::Graph& graph, std::int64_t budget,
              const std::shared_ptr<runtime::Pool>& pool, Level level) const;

  /// The plan of build(), but nothing is built; throws as build().
  plan::Fitted plan(const ir::Graph& graph, std::int64_t budget) const;

  /// The smallest budget that build() takes for this graph.
  std::int64_t smallest_budget(const ir::Graph& graph) const;

  /// runtime::run_alone as build() would compute the node, by engines that are distrusted, too.
  runtime::Alone run_alone(const ir::Graph& graph, std::size_t position,
                           const std::string& candidate, Level level,
                           const runtime::InputOf& input) const;

  /// The arenas of a graph's partitions are of this pool: a new one, or that of the process.
  std::shared_ptr<runtime::Pool> pool() const;

 private:
  plan::PlanOptions plan_options(std::int64_t budget, Level level) const;

  const Target& target_;
  EngineRecords& engines_;
};

}  // namespace clgpu::delegate
