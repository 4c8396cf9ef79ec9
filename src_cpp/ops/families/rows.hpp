// Copies of rows, which the pass stream_rows makes.
#pragma once

#include "ops/shared/row_rules.hpp"

namespace clgpu::ops {

/// A node that copies rows of `source`, NHWC with n = 1, to `result`. `kept`: for a later step, so
/// the result must not be placed in another tensor, which would then live as long.
ir::Node rows_of(int source, RowRange rows, int result, bool kept);

/// A node that copies a sample of `source`, NHWC, to `result`.
ir::Node sample_of(int source, int sample, int result);

}  // namespace clgpu::ops
