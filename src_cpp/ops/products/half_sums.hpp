// Half sums (option `sums`): products are added in half, block by block, and the blocks in float.
// kernels/common/block_sums.cl has the arithmetic.
#pragma once

#include <vector>

#include "ops/family.hpp"

namespace clgpu::ops {

/// Products that are added in half before their sum is added to a float: longer blocks have larger
/// errors, shorter ones take more time (docs/precision.md).
constexpr int kHalfBlock = 32;

/// Whether the sums of this node may be half (ir::Node::half_sums) and the device computes in half.
bool takes_half_sums(const NodeContext& node, const DeviceInfo& device);

/// The same candidate with half sums, "NAME_half": launches whose macro SUM_T is float get half and
/// BLOCK. Its kernels declare their sums as kernels/common/block_sums.cl says.
kernel::Candidate half_form(kernel::Candidate candidate);

/// The half forms of all candidates, and these behind them; only these if the node or the device
/// does not take half sums.
std::vector<kernel::Candidate> with_half_forms(const NodeContext& node, const DeviceInfo& device,
                                               std::vector<kernel::Candidate> candidates);

}  // namespace clgpu::ops
