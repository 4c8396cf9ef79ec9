// What a node costs at least, whichever kernel computes it: for cost models and profiles.
#pragma once

#include <cstdint>

#include "ops/family.hpp"

namespace clgpu::ops {

struct Work {
  double flops = 0;  ///< arithmetic operations, two for each multiply-add
  std::int64_t bytes_read = 0, bytes_written = 0;  ///< its tensors as the device stores them, once
};

/// Work of a node with inferred shapes; none for a view.
Work work_of(const NodeContext& node);

}  // namespace clgpu::ops
