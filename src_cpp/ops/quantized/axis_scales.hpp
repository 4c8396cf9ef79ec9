// Scales and zero points for kernels that convert between floats and quantised integers.
#pragma once

#include <vector>

#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {

/// Gives a launch the macro PER_AXIS and the arguments scales, zero_points, axis_size and inner of
/// kernels/quantize/quantize.cl; the tables are the first two scratch buffers of `candidate`.
inline void push_axis_scales(kernel::Candidate& candidate, kernel::Launch& launch,
                             const ir::Tensor& tensor) {
  const ir::Quantization none{{1.0F}, {0}, 0};
  const ir::Quantization& q = tensor.quantization == nullptr ? none : *tensor.quantization;
  std::int64_t inner = 1;
  for (int axis = q.axis + 1; axis < tensor.shape.rank(); ++axis) inner *= tensor.shape[axis];
  candidate.scratch = {kernel::table(q.scales), kernel::table(q.zero_points)};
  launch.macro("PER_AXIS", q.scales.size() > 1 ? 1 : 0);
  launch.scratch_in(0).scratch_in(1);
  launch.i32(static_cast<std::int64_t>(q.scales.size())).i32(inner);
}

/// RowRules::unit of conversions: rows are alike unless the scales run along an axis.
inline int axis_scales_unit(const NodeContext& node) {
  for (const ir::Tensor* tensor : {&node.input(0), &node.output(0)}) {
    if (tensor->is_quantized() && tensor->quantization->per_axis()) return 0;
  }
  return kRowwise.unit(node);
}

}  // namespace clgpu::ops
