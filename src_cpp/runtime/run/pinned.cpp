#include "runtime/run/pinned.hpp"

#include <utility>

namespace clgpu::runtime {

Pinned::Pinned(cl::Context& context, const cl::QueueHandle& queue, std::size_t bytes,
               cl::cl_int* problem)
    : context_(&context), queue_(&queue), object_(context.create_pinned(bytes)) {
  cl::cl_int code = cl::CL_OUT_OF_RESOURCES;
  if (object_) {
    data_ = context.api().clEnqueueMapBuffer(queue.get(), object_.get(), cl::CL_TRUE,
                                             cl::CL_MAP_READ | cl::CL_MAP_WRITE, 0, bytes, 0,
                                             nullptr, nullptr, &code);
  }
  if (code != cl::CL_SUCCESS) data_ = nullptr;
  if (problem != nullptr) *problem = code;
}

Pinned::~Pinned() {
  if (data_ == nullptr) return;
  const cl::Api& api = context_->api();
  api.clEnqueueUnmapMemObject(queue_->get(), object_.get(), data_, 0, nullptr, nullptr);
  api.clFinish(queue_->get());
}

Pinned::Pinned(Pinned&& other) noexcept { *this = std::move(other); }

Pinned& Pinned::operator=(Pinned&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(queue_, other.queue_);
  std::swap(object_, other.object_);
  std::swap(data_, other.data_);
  return *this;
}

}  // namespace clgpu::runtime
