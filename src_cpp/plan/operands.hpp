// The buffers of a step beside the operands of its launch.
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
