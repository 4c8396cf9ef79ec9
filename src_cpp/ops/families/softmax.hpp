// What passes may know of SOFTMAX.
#pragma once

#include <optional>

#include "ir/node.hpp"

namespace clgpu::ops {

/// The factor of the inputs of a SOFTMAX; none for every other node.
std::optional<float> softmax_factor(const ir::Node& node);

}  // namespace clgpu::ops
