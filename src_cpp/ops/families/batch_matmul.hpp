// What passes may know of BATCH_MATMUL.
#pragma once

#include <optional>

#include "ir/node.hpp"

namespace clgpu::ops {

/// Which matrices a product reads transposed.
struct Adjoints {
  bool x = false, y = false;
};

/// None for a node that is no BATCH_MATMUL.
std::optional<Adjoints> adjoints_of(const ir::Node& node);

}  // namespace clgpu::ops
