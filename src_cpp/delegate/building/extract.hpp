// What a partition takes of the model (Model::extract).
#pragma once

#include <memory>
#include <vector>

#include "delegate/building/specialization.hpp"
#include "delegate/building/states.hpp"
#include "ir/graph.hpp"

namespace clgpu::delegate {

/// A number of a tensor that planning needs (ops::Operation::measured).
struct Measured {
  int tensor = -1;  ///< TFLite's id
  int result = -1;  ///< the first output of the node that needs it
  ir::Graph graph;  ///< computes it of the tensor
};

struct Extract {
  ir::Graph graph{};                                 ///< before any pass
  std::unique_ptr<Specialization> specialization{};  ///< null if no value of it follows from shapes
  std::vector<int> awaited{};  ///< TFLite's ids of inputs with values that planning needs
  std::vector<Measured> measured{};
  std::unique_ptr<States> states{};             ///< null if it has none
  std::shared_ptr<const InnerTensors> inner{};  ///< tensors of the CPU's nodes; may be null
};

}  // namespace clgpu::delegate
