// Runs neighbouring launches of a plan as one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/bundles.hpp"
#include "runtime/run/shared_kernel.hpp"

namespace clgpu::runtime {

/// What became of it.
struct BundlesTaken {
  int kernels = 0;     ///< bundles of an inference
  int launches = 0;    ///< of the plan, that are members of them
  std::string reason;  ///< the error that made their launches run by themselves; else empty
};

class Bundles {
 public:
  /// `local_bytes`: as plan::find_bundles. `plan` must outlive it, `addresses`, too, which must
  /// have learnt all buffers before set_buffers().
  Bundles(cl::Context& context, const Addresses& addresses, const plan::Plan& plan,
          const std::vector<std::size_t>& local_bytes);

  bool empty() const { return bundles_.empty(); }
  BundlesTaken taken() const;

  /// Builds the kernels; adds the programs to `programs`. Throws cl::BuildError, cl::OpenCLError,
  /// and Error if a kernel does not allow the work-groups of its members.
  void build(store::Store& store, cl::Context::Programs& programs);

  /// Sets the kernels' arguments that are buffers: those whose `memory` is not null.
  void set_buffers(const std::function<cl::cl_mem(int buffer)>& memory);

  /// Runs each kernel once, as an attempt if no process has launched it (cl::FirstLaunch). Throws
  /// cl::OpenCLError, and store::LeftOut if it has ended an earlier process.
  void try_all(store::Store& store, const cl::QueueHandle& queue) const;

  /// Enqueues the bundle that begins at a run step, unless it goes beyond the step `end`; returns
  /// the step after it, or `step` if nothing was enqueued. Throws cl::OpenCLError.
  std::size_t launch(std::size_t step, const cl::QueueHandle& queue,
                     std::size_t end = SIZE_MAX) const;

 private:
  struct Bound {
    plan::Bundle bundle;
    SharedKernel kernel;
    std::optional<cl::FirstLaunch> first_launch;
  };

  cl::Context& context_;
  const Addresses& addresses_;
  const plan::Plan& plan_;
  std::vector<Bound> bundles_;  // by first step
};

}  // namespace clgpu::runtime
