// Facts about the family of CAST that passes need.
#pragma once

#include "ir/graph.hpp"

namespace clgpu::ops {

/// Whether a node converts float16 or bfloat16 to float32.
bool is_half_cast(const ir::Graph& graph, const ir::Node& node);

}  // namespace clgpu::ops
