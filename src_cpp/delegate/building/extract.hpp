// What a partition takes of the model (Model::extract).
#pragma once

#include <memory>

#include "delegate/building/specialization.hpp"
#include "delegate/building/states.hpp"
#include "ir/graph.hpp"

namespace clgpu::delegate {

struct Extract {
  ir::Graph graph{};                                 ///< before any pass
  std::unique_ptr<Specialization> specialization{};  ///< null if no value of it follows from shapes
  std::unique_ptr<States> states{};                  ///< null if it has none
};

}  // namespace clgpu::delegate
