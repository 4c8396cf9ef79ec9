// The choice of the candidate that computes a node.
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

/// The engine of the option, else the tuned one, else the first that works. `static_inputs`: which
/// inputs of the node are known at load time. Throws NoCandidate, and OptionError if no engine of
/// the option can compute the node.
Chosen choose(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device,
              const PlanOptions& options, const Broken& broken,
              const std::vector<bool>& static_inputs);

/// The alternatives in a value of the option: "winograd|auto" is {"winograd", "auto"}.
std::vector<std::string> alternatives(const std::string& engine);

/// Whether this is a candidate's name, or the part of its name before an underscore.
bool goes_by(const std::string& candidate, const std::string& engine);

}  // namespace clgpu::plan
