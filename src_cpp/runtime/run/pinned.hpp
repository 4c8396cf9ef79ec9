// Host memory that the driver keeps in place, so that the device copies to and from it by itself.
#pragma once

#include <cstddef>

#include "cl/context.hpp"

namespace clgpu::runtime {

/// A block of it, which is mapped as long as it exists. Does not count as device memory. Nothing
/// that is enqueued may use it any more when it is destroyed or assigned.
class Pinned {
 public:
  Pinned() = default;  ///< none
  /// None if the driver refuses it; `problem`, if not null, gets its answer. `queue` maps the
  /// block, and must exist as long.
  Pinned(cl::Context& context, const cl::QueueHandle& queue, std::size_t bytes,
         cl::cl_int* problem = nullptr);
  ~Pinned();
  Pinned(Pinned&& other) noexcept;
  Pinned& operator=(Pinned&& other) noexcept;

  /// Null if there is none.
  void* data() const { return data_; }

 private:
  cl::Context* context_ = nullptr;
  const cl::QueueHandle* queue_ = nullptr;
  cl::MemHandle object_;
  void* data_ = nullptr;
};

}  // namespace clgpu::runtime
