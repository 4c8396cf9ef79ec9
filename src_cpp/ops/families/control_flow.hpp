// Nodes of loops and branches whose conditions only an inference knows.
#pragma once

#include "ops/family.hpp"

namespace clgpu::ops {

/// The kind of their nodes, which have graphs (ir::Node::graphs).
const Family& running(Control control);

/// A copy of a tensor. Each carried tensor needs memory of its own.
ir::Node state_of(int source, int result);

}  // namespace clgpu::ops
