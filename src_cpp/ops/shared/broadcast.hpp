// The strides with which element-wise kernels read operands that broadcast to one shape
// (kernels/common/broadcast.cl).
#pragma once

#include <string>
#include <vector>

#include "ops/shared/common.hpp"

namespace clgpu::ops {

/// Axes of a broadcast, merged as far as every operand allows: a bias over the channels is rank 2
/// whatever the rank of the tensor is, equal shapes and scalars are rank 1. The count of axes is
/// then padded to 1, 3 or 6 (macro RANK), so that few programs serve all shapes.
struct BroadcastWalk {
  std::vector<int> dims;                  ///< slowest first; leading ones where padded
  std::vector<std::vector<int>> strides;  ///< of each operand, elements; 0 or 1 along the last axis

  std::int64_t elements() const { return ir::Shape(dims).elements(); }

  /// Elements that a work-item may process at once: 4 if this cuts no run along the last axis, else
  /// 1. Rank 1 always allows 4, because its kernel supports a shorter last run.
  int width() const { return dims.size() == 1 || dims.back() % 4 == 0 ? 4 : 1; }

  /// Sets RANK and appends the kernel parameters BROADCAST_DIMS and one BROADCAST_STRIDES each.
  void append_to(kernel::Launch& launch) const {
    launch.macro("RANK", static_cast<std::int64_t>(dims.size()));
    for (const int d : dims) launch.i32(d);
    for (const auto& operand : strides) {
      for (const int s : operand) launch.i32(s);
    }
  }
};

/// The walk over `to` of operands whose shapes broadcast to it.
inline BroadcastWalk broadcast_walk(const ir::Shape& to, const std::vector<ir::Shape>& operands) {
  std::vector<std::vector<int>> full;
  for (const ir::Shape& operand : operands) full.push_back(broadcast_strides(operand, to));

  // Fastest axis first while merging: the next slower axis continues the last one when each operand
  // steps over it as if the two were one.
  std::vector<int> dims;
  std::vector<std::vector<int>> strides(operands.size());
  for (int axis = to.rank() - 1; axis >= 0; --axis) {
    if (to[axis] == 1) continue;
    bool continues = !dims.empty();
    for (std::size_t k = 0; continues && k < operands.size(); ++k) {
      continues = full[k][uz(axis)] == strides[k].back() * dims.back();
    }
    if (continues) {
      dims.back() *= to[axis];
      continue;
    }
    dims.push_back(to[axis]);
    for (std::size_t k = 0; k < operands.size(); ++k) strides[k].push_back(full[k][uz(axis)]);
  }
  const std::size_t rank = dims.size() <= 1 ? 1 : dims.size() <= 3 ? 3 : 6;
  CLGPU_CHECK(dims.size() <= rank);
  dims.resize(rank, 1);
  BroadcastWalk walk{{dims.rbegin(), dims.rend()}, {}};
  for (auto& operand : strides) {
    operand.resize(rank, 0);
    walk.strides.emplace_back(operand.rbegin(), operand.rend());
  }
  return walk;
}

}  // namespace clgpu::ops
