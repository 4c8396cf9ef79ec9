// Images over buffers, for kernels that read buffers as images.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "cl/context.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// Makes an image when a kernel first asks for it. An image keeps the memory of its buffer alive,
/// and addresses of objects are reused: so forget() must precede the release of the buffer's
/// object. Not thread-safe.
class Images {
 public:
  explicit Images(cl::Context& context) : context_(context) {}

  /// The image over `object`, which holds `buffer`, with texels of type `texel`. Throws
  /// cl::OpenCLError.
  cl::cl_mem over(cl::cl_mem object, const plan::Buffer& buffer, DType texel);

  /// To be called before `object` is released.
  void forget(cl::cl_mem object) { images_.erase(object); }
  void clear() { images_.clear(); }

 private:
  using Texels = std::pair<std::int64_t, DType>;
  cl::Context& context_;
  std::map<cl::cl_mem, std::map<Texels, cl::MemHandle>> images_;
};

}  // namespace clgpu::runtime
