// Buffers of a plan whose objects stay the same from inference to inference.
#pragma once

#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

/// Whether nobody but the executor replaces the object of a buffer: it is no input or output of the
/// partition, which others may lend, and tensors do not move.
bool is_lasting(const Plan& plan, int buffer);

/// The numbers of a run step's arguments that are such buffers, not read as images. None of a step
/// that writes much: it takes so much longer than its launch that the launch's cost is hidden.
std::vector<int> lasting_arguments(const Plan& plan, const Step& step);

}  // namespace clgpu::plan
