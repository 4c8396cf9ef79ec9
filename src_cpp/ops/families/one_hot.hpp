// What passes may know of ONE_HOT.
#pragma once

#include <optional>

#include "ir/graph.hpp"

namespace clgpu::ops {

/// Inputs of a node whose result has a new last axis, which is `on` at the index and `off`
/// elsewhere.
struct HotElements {
  int indices, on, off;
};

/// Nothing for every other node.
std::optional<HotElements> hot_elements(const ir::Graph& graph, const ir::Node& node);

}  // namespace clgpu::ops
