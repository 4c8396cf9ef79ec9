// Rows divided by their lengths, for families with other definitions of the length.
#pragma once

#include <vector>

#include "ops/family.hpp"

namespace clgpu::ops {

/// The length of a row is sqrt(sum of its squares / divisor + epsilon).
struct RowLength {
  float divisor, epsilon;
};

/// Candidates for a node of another family, which divide the rows (the last axis) of input 0 by
/// their lengths and multiply them by input 1, one number per column, if there is one.
std::vector<kernel::Candidate> row_norm_candidates(const NodeContext& node,
                                                   const DeviceInfo& device,
                                                   const RowLength& length);

}  // namespace clgpu::ops
