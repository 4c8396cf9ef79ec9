// Whether a graph is one.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace clgpu::ir {

/// An id that is out of range, a tensor that is read before it is written, or written by two nodes;
/// empty where there is nothing of this.
std::string problem_of(const Graph& graph);

/// Throws InternalError where there is a problem.
void verify(const Graph& graph);

}  // namespace clgpu::ir
