// Device memory that loading a plan takes.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

/// What the executor does around each load step: buffers that are allocated before it, and those
/// that are freed behind it.
struct LoadStep {
  std::vector<int> allocate, free;
};

/// One per step of Plan::load. Weights are allocated when a step first needs them and stay; what
/// only loading needs is freed behind its last step. Weights that no step needs follow at the end.
std::vector<LoadStep> load_schedule(const Plan& plan);

/// The most bytes allocated at one time while the load steps run; the arena does not exist yet.
std::int64_t load_peak(const Plan& plan);

}  // namespace clgpu::plan
