// Views that passes make.
#pragma once

#include "ir/node.hpp"
#include "ir/shape.hpp"

namespace clgpu::ops {

/// A RESHAPE of `source` to a shape, for messages a part of the node `of`.
ir::Node reshape_of(const ir::Node& of, int source, int result, const ir::Shape& shape);

}  // namespace clgpu::ops
