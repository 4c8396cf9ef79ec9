// The expected cost of partitions.
#pragma once

#include <utility>
#include <vector>

#include "delegate/target.hpp"
#include "delegate/tell/ledger.hpp"
#include "plan/budget/cost.hpp"

namespace clgpu::delegate {

/// The cost on the device, and on `threads` threads of this machine. The first call for a device or
/// a machine measures their rates.
plan::Cost expected_cost(const Target& target, const plan::Load& load, int threads);

/// The work of each partition of the report.
std::vector<plan::Load> loads(const Target& target, const Ledger& ledger);

/// The expected cost of each partition of the report, with its parts.
std::vector<std::pair<plan::Load, plan::Cost>> estimates(const Target& target, const Ledger& ledger,
                                                         int threads);

}  // namespace clgpu::delegate
