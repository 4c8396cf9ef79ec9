// Hard sigmoids, which converters write as relu6(x + 3) / 6.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "passes/rewriting.hpp"

namespace clgpu::passes {

/// What several nodes compute of a tensor x.
struct Spelled {
  int x;
  std::vector<std::size_t> parts;  ///< their indices
};

/// relu6(x + 3), as one node or two, whose result is `tensor`.
std::optional<Spelled> clipped_sum(const ir::Graph& graph, const Rewriting& rewriting, int tensor);

/// The tensor of which a node without an activation computes the sixth part; -1 of other nodes.
int sixth_of(const ir::Graph& graph, const ir::Node& node);

/// relu6(x + 3) / 6, whose result is `tensor`.
std::optional<Spelled> hard_sigmoid(const ir::Graph& graph, const Rewriting& rewriting, int tensor);

}  // namespace clgpu::passes
