// A plan within a budget of device memory.
#pragma once

#include "base/device_info.hpp"
#include "ir/graph.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

/// No measure brings a plan within its budget.
class BudgetError : public OptionError {
 public:
  BudgetError(std::int64_t smallest, const std::string& why)
      : OptionError(why), smallest_(smallest) {}
  /// Bytes of the smallest budget that a plan was found for.
  std::int64_t smallest() const { return smallest_; }

 private:
  std::int64_t smallest_;
};

/// A plan, and the graph it is of: rewritten with the shapes of the moment.
struct Fitted {
  ir::Graph graph;
  Plan plan;
};

/// Plans a graph whose shapes are inferred within PlanOptions::memory_budget and max_object, which
/// may take rewriting it: concatenations become places that their inputs are written to, large
/// tensors are computed band by band, or wait on the host. Takes the first of a list of measures,
/// cheapest first, that fits. Throws BudgetError when none does, else as make_plan.
Fitted fit(const ir::Graph& graph, const DeviceInfo& device, const PlanOptions& options,
           const Broken& broken);

}  // namespace clgpu::plan
