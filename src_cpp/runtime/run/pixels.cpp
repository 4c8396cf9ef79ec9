#include "runtime/run/pixels.hpp"

#include "base/error.hpp"
#include "kernel/launch.hpp"
#include "kernel/macros.hpp"
#include "kernel/sources.hpp"

namespace clgpu::runtime {
namespace {

constexpr const char* kFile = "pixels/pixels.cl";

std::string options_of(const Pixels::Form& form) {
  const std::string type = cl_name(form.dtype);
  return "-cl-std=CL1.2 -DTENSOR_T=" + type +
         " -DTO_FLOAT=" + (form.dtype == DType::kF32 ? "1" : "0") +
         " -DCHANNELS=" + std::to_string(form.channels);
}

}  // namespace

Pixels::Pixels(cl::Context& context, store::Store& store, const Form& form, bool is_input)
    : context_(context), form_(form) {
  const std::size_t elements = form.width * form.height * static_cast<std::size_t>(form.channels);
  // Kernels that read and write whole vectors get a few bytes more.
  constexpr std::size_t kVector = 64;
  const std::size_t bytes = (elements * size_of(form.dtype) + kVector - 1) / kVector * kVector;
  tensor_ = context.create_buffer(bytes, "the tensor of an image");
  const std::string options = options_of(form);
  kernel::check_macros(kFile, options);
  kernel_ = context.create_kernel({kFile, kernel::assemble(kFile), options},
                                  is_input ? "pixels_to_tensor" : "pixels_from_tensor", {}, store);
}

void Pixels::convert(const cl::QueueHandle& queue, cl::cl_mem image, float scale, float offset) {
  const cl::Api& api = context_.api();
  const cl::cl_mem tensor = tensor_.get();
  const auto set = [&](cl::cl_uint index, const auto& value) {
    cl::check(api.clSetKernelArg(kernel_.get(), index, sizeof value, &value), "clSetKernelArg",
              kFile);
  };
  set(0, image);
  set(1, tensor);
  set(2, scale);
  set(3, offset);
  const std::size_t global[] = {form_.width, form_.height};
  cl::check(api.clEnqueueNDRangeKernel(queue.get(), kernel_.get(), 2, nullptr, global, nullptr, 0,
                                       nullptr, nullptr),
            "clEnqueueNDRangeKernel", kFile);
  ++cl::counters().launches;
}

}  // namespace clgpu::runtime
