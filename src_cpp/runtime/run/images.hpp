// Images over buffers, for kernels that read them so.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "cl/context.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// Makes an image when a kernel first asks for it. Images keep the memory that they lie in, and
/// addresses of objects come again: so each has to be forgotten before its buffer's object goes.
/// Not thread-safe.
class Images {
 public:
  explicit Images(cl::Context& context) : context_(context) {}

  /// The image over `object`, which holds `buffer`, with texels of type `texel`. Throws
  /// cl::OpenCLError.
  cl::cl_mem over(cl::cl_mem object, const plan::Buffer& buffer, DType texel);

  /// To be called before `object` goes.
  void forget(cl::cl_mem object) { images_.erase(object); }
  void clear() { images_.clear(); }

 private:
  using Texels = std::pair<std::int64_t, DType>;
  cl::Context& context_;
  std::map<cl::cl_mem, std::map<Texels, cl::MemHandle>> images_;
};

}  // namespace clgpu::runtime
