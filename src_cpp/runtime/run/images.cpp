#include "runtime/run/images.hpp"

namespace clgpu::runtime {

cl::cl_mem Images::over(cl::cl_mem object, const plan::Buffer& buffer, DType texel) {
  const std::int64_t texels = buffer.bytes / kernel::texel_bytes(texel);
  cl::MemHandle& image = images_[object][{texels, texel}];
  if (!image) {
    image = context_.create_image(object, texel, texels, "an image over '" + buffer.name + "'");
  }
  return image.get();
}

}  // namespace clgpu::runtime
