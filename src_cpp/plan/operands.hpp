// Pairs of a step's buffers and its launch's operands.
#pragma once

#include "plan/plan.hpp"

namespace clgpu::plan {

/// Calls visit(buffer, operand) for the operands of a step, in the order of the launch's arguments.
template <class F>
void for_operands(const Step& step, F visit) {
  std::size_t next = 0;
  for (const kernel::Arg& arg : step.launch.args) {
    if (const auto* operand = std::get_if<kernel::Operand>(&arg))
      visit(step.buffers[next++], *operand);
  }
}

}  // namespace clgpu::plan
