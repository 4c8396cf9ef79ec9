// Copies of rows, which the pass stream_rows makes.
#pragma once

#include "ops/row_rules.hpp"

namespace clgpu::ops {

/// A node that copies rows of `source`, NHWC with n = 1, to `result`.
ir::Node rows_of(int source, RowRange rows, int result);

}  // namespace clgpu::ops
