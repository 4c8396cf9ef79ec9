#include "runtime/images.hpp"

namespace clgpu::runtime {

cl::cl_mem Images::over(cl::cl_mem object, int index, const plan::Buffer& buffer, DType texel) {
  Image& image = images_[{index, texel}];
  if (image.object != object) {
    image.object = nullptr;  // should the next line throw
    image.handle = context_.create_image(object, texel, buffer.bytes / kernel::texel_bytes(texel),
                                         "an image over '" + buffer.name + "'");
    image.object = object;
  }
  return image.handle.get();
}

}  // namespace clgpu::runtime
