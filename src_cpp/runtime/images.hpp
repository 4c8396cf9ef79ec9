// Images over the buffers of an executor, for kernels that read them so.
#pragma once

#include <map>
#include <utility>

#include "cl/context.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// Makes an image when a kernel first asks for it, and anew when its buffer's object is another
/// one. It must go before the objects. Not thread-safe.
class Images {
 public:
  explicit Images(cl::Context& context) : context_(context) {}

  /// The image over `object`, which holds `buffer`, with texels of type `texel`. `index` tells the
  /// buffers of a plan apart. Throws cl::OpenCLError.
  cl::cl_mem over(cl::cl_mem object, int index, const plan::Buffer& buffer, DType texel);

 private:
  struct Image {
    cl::cl_mem object = nullptr;
    cl::MemHandle handle;
  };
  cl::Context& context_;
  std::map<std::pair<int, DType>, Image> images_;
};

}  // namespace clgpu::runtime
