// The choice of the nodes that the delegate claims.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/building/stages.hpp"
#include "delegate/building/state.hpp"

namespace clgpu::delegate {

struct Claim {
  std::vector<int> nodes;                           ///< of the graph, by index
  std::vector<std::unique_ptr<Stages>> partitions;  ///< of these, built
  bool is_main = false;  ///< the model's main graph: not a body, a branch or a further signature
  /// Bodies and branches that are part of these nodes: the runtime does not run them any more.
  std::set<const TfLiteContext*> inlined;
};

/// Reads a graph, and builds partitions of the nodes that work on the device and are not left on
/// the CPU for another reason. Reports on the model's main graph. Throws Error if the runtime does
/// not return the graph, and plan::BudgetError.
/// `is_run`: false if the nodes of the graph are part of claimed nodes of another one. They are
/// claimed all the same, because LiteRT can require that of the nodes of all graphs; the partitions
/// are built if the runtime prepares them.
Claim claim(TfLiteContext& context, const std::shared_ptr<State>& state, bool is_run);

}  // namespace clgpu::delegate
