// The device memory that the intermediate tensors of a plan share.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "cl/context.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// The objects of an arena, and sub-buffers where tensors lie side by side in one.
class ArenaMemory {
 public:
  /// Throws cl::OpenCLError (out of memory).
  ArenaMemory(cl::Context& context, const plan::Plan& plan);
  ~ArenaMemory();
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  /// What a kernel is given for a buffer of the plan that lies in the arena.
  cl::cl_mem memory(int buffer) const { return of_buffer_[static_cast<std::size_t>(buffer)]; }
  const std::vector<cl::Memory>& objects() const { return objects_; }

 private:
  void divide(cl::Context& context, const plan::Plan& plan);

  std::vector<cl::Memory> objects_;
  std::vector<cl::MemHandle> parts_;  // sub-buffers, in the order of their creation
  std::vector<cl::cl_mem> of_buffer_;
};

}  // namespace clgpu::runtime
