// Host memory that an application gives the runtime for its tensors.
#pragma once

#include <cstddef>
#include <memory>

#include "cl/context.hpp"
#include "runtime/run/host_memory.hpp"

namespace clgpu::runtime {

/// Memory of the host that a device reaches without a further copy: pinned, where the device has
/// memory of its own; otherwise whole pages, on which the device can work. Thread-safe.
class Allocation {
 public:
  /// Zeros, aligned to pages and to what buffers of the device need; the memory reaches to the end
  /// of its last page. It lives until deallocate(), and while somebody has what find() returned.
  /// Throws Error if `bytes` is 0 or too many, and std::bad_alloc.
  static void* allocate(const std::shared_ptr<cl::Context>& context, std::size_t bytes);
  /// False if allocate() has not returned this address, or it was deallocated before.
  static bool deallocate(const void* data);
  /// The memory of a context in which these bytes lie; null if there is none.
  static std::shared_ptr<const Allocation> find(const cl::Context& context, const void* data,
                                                std::size_t bytes);

  /// The device copies from and to it without the driver's own pinned memory in between.
  bool is_pinned() const { return block_->is_pinned(); }

 private:
  Allocation(std::shared_ptr<cl::Context> context, std::size_t bytes);

  const std::shared_ptr<cl::Context> context_;
  std::shared_ptr<HostBlock> block_;
  char* data_ = nullptr;
  std::size_t bytes_ = 0;  // whole pages
};

}  // namespace clgpu::runtime
