// Checks that a graph is valid.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace clgpu::ir {

/// The problem if an id is out of range, or a tensor is read before it is written, or written by
/// two nodes; empty if there is none.
std::string problem_of(const Graph& graph);

/// Throws InternalError if there is a problem.
void verify(const Graph& graph);

}  // namespace clgpu::ir
