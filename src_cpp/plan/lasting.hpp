// Buffers of a plan whose objects, and their addresses, stay the same from inference to inference.
#pragma once

#include <vector>

#include "plan/plan.hpp"

namespace clgpu::plan {

/// Whether a buffer lies at one address: nobody but the executor replaces its object, that is, it
/// is no input or output of the partition, which others may lend, and tensors do not move; and it
/// is no sub-buffer. NVIDIA's driver (580) keeps sub-buffers in memory of their own, which agrees
/// with others that overlap only when a kernel gets the sub-buffer itself.
bool is_lasting(const Plan& plan, int buffer);

/// The numbers of a run step's arguments that are such buffers, not read as images. None of a step
/// that writes much: it takes so much longer than its launch that the launch's cost is hidden.
std::vector<int> lasting_arguments(const Plan& plan, const Step& step);

}  // namespace clgpu::plan
