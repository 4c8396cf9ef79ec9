// Runs launches of a plan as the stages of a few kernels.
#pragma once

#include <functional>
#include <vector>

#include "cl/context.hpp"
#include "plan/chains.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

class Chains {
 public:
  /// Builds the kernels. `plan` must outlive it; its launches are bound, so they have their final
  /// work-groups. Throws cl::BuildError and cl::OpenCLError.
  Chains(cl::Context& context, store::Store& store, const plan::Plan& plan,
         const std::vector<std::size_t>& local_bytes, const plan::ChainLimits& limits,
         cl::Context::Programs& programs);

  void tell() const;
  void test(const cl::QueueHandle& queue);
  bool empty() const { return chains_.empty(); }

  /// Sets the kernels' arguments that are buffers.
  void set_buffers(const std::function<cl::cl_mem(int buffer)>& memory);

  /// Enqueues the chain that begins at a run step; returns the step after it, or `step` if none
  /// begins there. Throws cl::OpenCLError.
  std::size_t launch(std::size_t step, const cl::QueueHandle& queue);

  /// Whether no chain gave up, once the queue has finished. Otherwise all results are wrong; the chains
  /// are ready for another inference.
  bool finished();

 private:
  struct Bound {
    plan::Chain chain;
    cl::KernelHandle kernel;
  };
  const plan::Plan& plan_;
  cl::Context& context_;
  std::vector<Bound> chains_;
  cl::Memory state_;
  cl::MemHandle report_;
  volatile cl::cl_uint* reported_ = nullptr;
};

}  // namespace clgpu::runtime
