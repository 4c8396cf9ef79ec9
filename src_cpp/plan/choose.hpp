// Which of its candidates computes a node.
#pragma once

#include "base/device_info.hpp"
#include "ir/graph.hpp"
#include "kernel/launch.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

struct Chosen {
  kernel::Candidate candidate;
  Choice choice;
};

/// The engine asked for, else the tuned one, else the first that works. `static_inputs` tells which
/// inputs of the node are known at load time. Throws NoCandidate, and
/// OptionError when no engine asked for can compute the node.
Chosen choose(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device,
              const PlanOptions& options, const Broken& broken,
              const std::vector<bool>& static_inputs);

/// The alternatives of an engine asked for: "winograd|auto" is {"winograd", "auto"}.
std::vector<std::string> alternatives(const std::string& engine);

/// Whether a candidate goes by this name: its own, or the part of it before an underscore.
bool goes_by(const std::string& candidate, const std::string& engine);

}  // namespace clgpu::plan
