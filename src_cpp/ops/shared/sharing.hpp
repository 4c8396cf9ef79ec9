// Ways for work-items to share the outputs of a reduction.
#pragma once

#include "ops/shared/common.hpp"

namespace clgpu::ops {

/// A work-group makes `outputs` outputs; `items` work-items, a power of two, share each.
struct Sharing {
  const char* name;  ///< of the candidate: "naive" (items is 1) or "tree"
  std::size_t outputs, items;
  kernel::Form form = kernel::Form::kTuned;  ///< of the candidate
  std::size_t group() const { return outputs * items; }
  /// Total number of work-items for a number of outputs.
  std::size_t range(std::int64_t all_outputs) const {
    return uz(ceil_div(all_outputs, static_cast<std::int64_t>(outputs))) * group();
  }
};

/// The largest power of two of work-items, up to `most`, that a work-group of this device can run
/// in parallel.
std::size_t group_of(std::size_t most, const DeviceInfo& device);

/// Ways to share, in order of preference. `count` elements make one output; `adjacent`: they are
/// adjacent in memory, else neighbouring elements belong to neighbouring outputs.
std::vector<Sharing> sharings(std::int64_t outputs, std::int64_t count, bool adjacent,
                              const DeviceInfo& device);

}  // namespace clgpu::ops
