// The minimum work of a node, whichever kernel computes it: for cost models and profiles.
#pragma once

#include <cstdint>

#include "ops/family.hpp"

namespace clgpu::ops {

struct Work {
  double flops = 0;  ///< arithmetic operations, two for each multiply-add, without fused ones
  std::int64_t bytes_read = 0, bytes_written = 0;  ///< of its tensors in device memory, each once

  void operator+=(const Work& more) {
    flops += more.flops;
    bytes_read += more.bytes_read;
    bytes_written += more.bytes_written;
  }
};

/// Work of a node with inferred shapes; none for a view.
Work work_of(const NodeContext& node);

/// Family::flops of operations that only move data.
double no_flops(const NodeContext& node);

}  // namespace clgpu::ops
