// What passes may know of element-wise operations on one tensor.
#pragma once

#include <optional>

#include "ir/node.hpp"

namespace clgpu::ops {

/// The function of a node that is nothing but an ir::Activation of one tensor (RELU, TANH, GELU
/// ...), so that the node before it may take it over as its epilogue; nullopt for every other node.
std::optional<ir::Epilogue> as_epilogue(const ir::Node& node);

}  // namespace clgpu::ops
