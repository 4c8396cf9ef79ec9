// What passes may know of QUANTIZE.
#pragma once

#include "ir/node.hpp"

namespace clgpu::ops {

/// QUANTIZE of floats, or of int8 with another scale.
ir::Node quantize_of(int src, int dst);

}  // namespace clgpu::ops
