// Makes one plan of a graph.
#pragma once

#include "plan/plan.hpp"

namespace clgpu::plan {

/// Plans a graph whose shapes are inferred. Throws NoCandidate, and OptionError for an engine that
/// cannot compute a node of its family.
Plan make_plan(const ir::Graph& graph, const DeviceInfo& device, const PlanOptions& options,
               const Broken& broken);

}  // namespace clgpu::plan
