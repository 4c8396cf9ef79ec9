// Sums of the results of experts: nodes that passes::group_experts makes.
#pragma once

#include "ir/graph.hpp"

namespace clgpu::ops {

/// The sum over `chosen` of y `[samples, chosen, 1, cols]`, each times its weight, of which there
/// are samples * chosen; the result is `[samples, cols]`. `last`: the node in whose place it
/// stands.
ir::Node expert_sum(const ir::Node& last, int y, int weights, int result);

}  // namespace clgpu::ops
