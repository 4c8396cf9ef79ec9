// Which steps of a plan use the same memory.
#pragma once

#include <vector>

#include "plan/operands.hpp"
#include "plan/plan.hpp"

namespace clgpu::plan {

/// Memory that a step reads or writes.
struct Access {
  int buffer;
  bool writes;
};

/// Of all operands of a step, in their order.
std::vector<Access> accesses_of(const Step& step);

/// Whether a later use writes what an earlier one uses, or reads what it writes.
bool conflict(const Plan& plan, const std::vector<Access>& earlier,
              const std::vector<Access>& later);

/// Index of a buffer among those of a kernel, to which it is added if it is not there.
int number_of(int buffer, std::vector<int>& buffers);

}  // namespace clgpu::plan
