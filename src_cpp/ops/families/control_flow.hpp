// Nodes of loops and branches whose conditions only an inference knows.
#pragma once

#include "ops/family.hpp"

namespace clgpu::ops {

/// The kind of their nodes, which have graphs (ir::Node::graphs).
const Family& running(Control control);

/// A copy of a tensor. Each carried tensor needs memory of its own.
ir::Node state_of(int source, int result);
bool is_state(const ir::Node& node);

/// `result` is `first` if the bool `condition` is true, else `second`: what is left of a branch
/// whose graphs have become part of the graph around it.
ir::Node choice_of(int condition, int first, int second, int result);
bool is_choice(const ir::Node& node);

}  // namespace clgpu::ops
