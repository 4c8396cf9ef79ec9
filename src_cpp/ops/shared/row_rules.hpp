// The dependence of rows of a node's results on rows of its inputs, for passes that compute nodes
// band by band. Rows are axis 1 of NHWC tensors with n = 1.
#pragma once

#include <vector>

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {

/// Rows first <= row < end.
struct RowRange {
  int first = 0, end = 0;
  int count() const { return end - first; }
  bool operator==(const RowRange& other) const { return first == other.first && end == other.end; }
  bool operator!=(const RowRange& other) const { return !(*this == other); }
  CLGPU_FIELDS(first, end)
};

/// Floor and ceiling of a / b; b > 0.
constexpr int floor_of(int a, int b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int ceil_of(int a, int b) { return a / b + (a % b > 0 ? 1 : 0); }

/// The part of one input that rows of the results need.
struct RowNeed {
  enum class Kind {
    kWhole,  ///< all of it: weights, or inputs that are broadcast along the rows
    kExact,  ///< these rows, in a tensor without other rows
    kRows,   ///< these rows, in a tensor that may have more before and after
  };
  enum class Beyond {
    kNothing,    ///< rows outside of the input cost nothing
    kReflect,    ///< they mirror the rows inside, without the outermost
    kSymmetric,  ///< they mirror the rows inside, with the outermost
  };
  Kind kind = Kind::kWhole;
  /// Computed at the ends of the image as in its middle, so it may begin below 0 and end beyond the
  /// input.
  RowRange rows{};
  Beyond beyond = Beyond::kNothing;
};

/// A node that computes some rows of its results.
struct RowBand {
  RowRange rows;                 ///< of the results
  std::vector<RowRange> inputs;  ///< by slot: the existing rows of the input; {} unless kRows
};

/// A family's rule, Family::rows. The pass ensures that results are NHWC with n = 1 and of one
/// height, and that inputs other than kWhole have rank 4 and n = 1.
struct RowRules {
  /// Results are computed in multiples of this many rows, except the last; 0: this node's rows
  /// cannot be computed separately.
  int (*unit)(const NodeContext&);
  /// `first` and `end` may be outside of the results.
  RowNeed (*need)(const NodeContext&, int input, RowRange rows);
  /// Attributes of the node that computes a band.
  ir::AttrsPtr (*attrs)(const NodeContext&, const RowBand&);
};

/// A node that computes each row from the same row of its inputs; inputs of one row are broadcast.
extern const RowRules kRowwise;

}  // namespace clgpu::ops
