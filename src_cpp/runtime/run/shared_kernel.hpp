// Kernels that compute several launches of a plan: chains and bundles.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// Sets the first arguments of a kernel, which are `buffers` of the plan: those whose `memory` is
/// not null. `what` is for messages: "a chain". Throws cl::OpenCLError.
void set_buffers(const cl::Context& context, const cl::KernelHandle& kernel, const plan::Plan& plan,
                 const std::vector<int>& buffers,
                 const std::function<cl::cl_mem(int buffer)>& memory, const std::string& what);

/// Throws Error if a kernel of `what` allows no work-groups of `items` work-items.
void check_work_group(const cl::Context& context, const cl::KernelHandle& kernel, std::size_t items,
                      const std::string& what);

}  // namespace clgpu::runtime
