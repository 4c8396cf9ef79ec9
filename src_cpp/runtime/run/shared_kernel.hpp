// Kernels that compute several launches of a plan: chains and bundles.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/plan.hpp"
#include "runtime/run/addresses.hpp"

namespace clgpu::runtime {

/// A kernel whose first arguments are `buffers` of a plan.
struct SharedKernel {
  cl::KernelHandle handle;
  std::vector<int> addresses;  ///< numbers of the arguments that are addresses; they ascend
};

/// Creates it, with addresses of all buffers whose objects stay the same; adds the program to
/// `programs`. Throws as cl::Context::create_kernel.
SharedKernel create_shared_kernel(const Addresses& addresses, cl::ProgramSource source,
                                  const std::string& entry, const plan::Plan& plan,
                                  const std::vector<int>& buffers, store::Store& store,
                                  cl::Context::Programs& programs,
                                  std::optional<cl::FirstLaunch>* first_launch = nullptr);

/// Sets the arguments that are buffers of the plan: those whose `memory` is not null. `what` is for
/// messages: "a chain". Throws cl::OpenCLError.
void set_buffers(const Addresses& addresses, const SharedKernel& kernel, const plan::Plan& plan,
                 const std::vector<int>& buffers,
                 const std::function<cl::cl_mem(int buffer)>& memory, const std::string& what);

/// Throws Error if a kernel of `what` allows no work-groups of `items` work-items.
void check_work_group(const cl::Context& context, const cl::KernelHandle& kernel, std::size_t items,
                      const std::string& what);

}  // namespace clgpu::runtime
