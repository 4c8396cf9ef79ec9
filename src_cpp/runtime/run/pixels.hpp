// Conversion between images of the application and tensors.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.hpp"
#include "cl/context.hpp"

namespace clgpu::runtime {

/// For tensors of one form: element = scale * channel + offset, with channels from 0 to 255.
class Pixels {
 public:
  struct Form {
    DType dtype = DType::kF32;  ///< kF32, kI8 or kU8
    int channels = 3;           ///< 3 or 4
    std::size_t width = 0, height = 0;
    bool operator==(const Form& o) const {
      return dtype == o.dtype && channels == o.channels && width == o.width && height == o.height;
    }
  };

  /// Builds the kernel, and allocates the tensor. Throws OpenCLError, BuildError.
  Pixels(cl::Context& context, store::Store& store, const Form& form, bool is_input);

  const Form& form() const { return form_; }
  /// The tensor, in the form that the runtime knows.
  cl::cl_mem tensor() const { return tensor_.get(); }
  /// Enqueues the conversion: of an input from the image, of an output to it. Throws OpenCLError.
  void convert(const cl::QueueHandle& queue, cl::cl_mem image, float scale, float offset);

 private:
  cl::Context& context_;
  const Form form_;
  cl::Memory tensor_;
  cl::KernelHandle kernel_;
};

}  // namespace clgpu::runtime
