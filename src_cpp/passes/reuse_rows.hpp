// Results that are kept from one inference to the next, and computed again where the rows of the
// inputs that they depend on have changed (DeepMon's cache of convolutional layers: Huynh, Lee and
// Balan, MobiSys 2017). A shaped pass: it relies on dimensions.
#pragma once

#include "base/device_info.hpp"
#include "ir/graph.hpp"

namespace clgpu::passes {

struct ReuseWish {
  /// The largest difference of an element from the value that was computed with; of integers in
  /// steps.
  float tolerance = 0;
  int rows = 0;  ///< of the inputs, for each of which a node gets a launch of its own; 0: chosen
};

/// The nodes that depend on inputs which the application sets (ir::Tensor::is_fed), and on nothing
/// else that changes, read copies of these inputs that are kept: a row of a copy is renewed when an
/// element of it differs by more than the tolerance (ops::HeldRowsAttrs). So results are those of
/// the copies. The nodes run only if rows that they depend on were renewed (ir::Node::predicate);
/// nodes of images whose rows need few rows of the inputs are divided into bands, each with its own
/// predicate, which write to their places in a whole tensor that is kept. Tensors are also kept
/// where a reader may run when their writer does not.
void reuse_rows(ir::Graph& graph, const ReuseWish& wish, const DeviceInfo& device);

}  // namespace clgpu::passes
