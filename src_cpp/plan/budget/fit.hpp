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

/// A plan and its graph, rewritten with the current shapes.
struct Fitted {
  ir::Graph graph;
  Plan plan;
};

/// Plans a graph with inferred shapes within PlanOptions::memory_budget and max_object. This may
/// rewrite it: inputs of concatenations are written in place, large tensors are computed band by
/// band or wait on the host. Takes the first measure of a list, the cheapest first, that fits.
/// Throws BudgetError if none does, else as make_plan.
Fitted fit(const ir::Graph& graph, const DeviceInfo& device, const PlanOptions& options,
           const Broken& broken);

}  // namespace clgpu::plan
