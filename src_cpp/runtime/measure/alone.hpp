// One node, run on the device with given inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/plan.hpp"
#include "store/store.hpp"

namespace clgpu::runtime {

/// Yields the host's bytes of a tensor that a node reads.
using InputOf = std::function<const void*(const ir::Tensor&, std::int64_t bytes)>;

struct Alone {
  /// An output of the node, as the host sees it.
  struct Result {
    int tflite_id;  ///< -1 for our own tensors
    std::vector<std::uint8_t> bytes;
  };
  std::vector<Result> results;
  std::string engine;  ///< as plan::Choice::engine
};

/// Runs the node at `position` of a graph with inferred shapes by one candidate of its family.
/// Throws Error if the candidate cannot compute the node, and the errors of building and running.
Alone run_alone(const std::shared_ptr<cl::Context>& context,
                const std::shared_ptr<store::Store>& store, const DeviceInfo& device,
                const ir::Graph& graph, std::size_t position, const std::string& candidate,
                plan::PlanOptions options, const plan::Broken& broken, const InputOf& input);

}  // namespace clgpu::runtime
