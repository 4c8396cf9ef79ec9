// The biases of products whose weights a plan rounds.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace clgpu::passes {

/// Why the bias of a node with weights cannot be corrected by the means of the channels of its
/// input 0; empty if it can.
std::string problem_of_correction(const ir::Graph& graph, const ir::Node& node,
                                  const std::vector<float>& means);

/// bias + sum of (weights - rounded) * means, where `rounded` are the node's weights as float16,
/// bfloat16, or int8 with a scale for each output channel. There may be no problem. Notes that the
/// graph relies on its shapes where the sizes of the image decide.
ir::Tensor corrected_bias(ir::Graph& graph, const ir::Node& node, const ir::Tensor& rounded,
                          const std::vector<float>& means);

}  // namespace clgpu::passes
