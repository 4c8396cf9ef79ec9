// Moving elements without arithmetic: the width of a move, and copies with a stride per axis.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "kernel/launch.hpp"

namespace clgpu::ops {

/// The unit that one work-item of a data-movement kernel moves: `elements` neighbours at once, as
/// bits, or one element that is converted between float and half.
struct MoveUnit {
  const char* src_type;  ///< macro SRC_T
  const char* dst_type;  ///< macro DST_T
  int elements;
};

/// Widest unit (16 bytes at most) of a move in which the length of every run and every offset is a
/// multiple of `divisor` elements. Relies on tensors beginning at multiples of 16 bytes.
MoveUnit move_unit(DType src, DType dst, std::int64_t divisor);

/// dst[i] = src[base + sum over k of strides[k] * i_k] where i_0, i_1 ... are the coordinates of i
/// in `dims`. All in elements; strides may be zero or negative.
struct StridedCopy {
  std::vector<int> dims, strides;
  std::int64_t base = 0;
};

/// The same copy with as few axes as possible: axes of size 1 dropped, adjacent ones joined.
StridedCopy merged(const StridedCopy& copy);

/// Launch of kernels/strided_copy that reads input 0 and writes output 0 of the node.
kernel::Launch strided_copy(const StridedCopy& copy, DType src, DType dst);

/// Value of the macro AXES for a number of axes: 2, 4 or 6.
int axes_variant(std::size_t axes);

/// Six values, `values` aligned to the right and `fill` in front of them.
std::array<int, 6> six(const std::vector<int>& values, int fill);

}  // namespace clgpu::ops
