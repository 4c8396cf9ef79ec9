// Device memory that loading a plan takes.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

/// The executor's work around a load step: buffers that it allocates before the step, and buffers
/// that it frees after the step.
struct LoadStep {
  std::vector<int> allocate, free;
};

/// One per step of Plan::load. Weights are allocated when a step first needs them, and stay.
/// Buffers that only loading needs are freed after their last step. Weights that no step needs come
/// last.
std::vector<LoadStep> load_schedule(const Plan& plan);

/// The most bytes allocated at one time during the load steps, when the arena does not exist yet.
std::int64_t load_peak(const Plan& plan);

}  // namespace clgpu::plan
