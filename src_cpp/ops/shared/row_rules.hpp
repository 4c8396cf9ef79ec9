// How rows of a node's results depend on rows of its inputs: what a pass must know to compute the
// node band by band. Rows are axis 1 of NHWC tensors with n = 1.
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

/// What rows of the results need of one input.
struct RowNeed {
  enum class Kind {
    kWhole,  ///< all of it: weights, or what is broadcast along the rows
    kExact,  ///< these rows, in a tensor of nothing else
    kRows,   ///< these rows, in a tensor that may have more on either side
  };
  enum class Beyond {
    kNothing,    ///< rows outside of the input cost nothing
    kReflect,    ///< they are those inside, mirrored at the outermost
    kSymmetric,  ///< the same, the outermost twice
  };
  Kind kind = Kind::kWhole;
  /// By the rule of the middle of the image at its ends, too: may begin below 0 and end beyond the
  /// input.
  RowRange rows{};
  Beyond beyond = Beyond::kNothing;
};

/// A node that computes some rows of its results.
struct RowBand {
  RowRange rows;                 ///< of the results
  std::vector<RowRange> inputs;  ///< by slot: what rows of the input there are; {} unless kRows
};

/// A family's rule, Family::rows. The pass sees to it that results are NHWC with n = 1 and of one
/// height, and inputs that are not kWhole of rank 4 with n = 1.
struct RowRules {
  /// Results are computed in multiples of so many rows, but for the last ones; 0: this node's rows
  /// cannot be computed apart.
  int (*unit)(const NodeContext&);
  /// `first` and `end` may lie outside of the results.
  RowNeed (*need)(const NodeContext&, int input, RowRange rows);
  /// Attributes of the node that computes a band.
  ir::AttrsPtr (*attrs)(const NodeContext&, const RowBand&);
};

/// A node that computes each row from the same row of its inputs; inputs of one row are broadcast.
extern const RowRules kRowwise;

}  // namespace clgpu::ops
