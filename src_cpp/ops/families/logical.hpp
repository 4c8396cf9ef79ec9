// What passes may know of the family of logical operations.
#pragma once

#include "ops/family.hpp"

namespace clgpu::ops {

/// `result` is true where `condition` is false. Both are bools.
ir::Node negation_of(int condition, int result);

}  // namespace clgpu::ops
