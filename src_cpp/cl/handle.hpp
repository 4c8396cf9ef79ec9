// Ownership of OpenCL objects: one move-only template for all kinds.
#pragma once

#include <utility>

#include "cl/api.hpp"
#include "cl/fork.hpp"

namespace clgpu::cl {

/// Owns one reference to an OpenCL object; `Release` is the member of Api that releases it.
template <class T, cl_int (CLGPU_CL_CALL* Api::*Release)(T)>
class Handle {
 public:
  Handle() = default;
  Handle(const Api& api, T object) : api_(&api), object_(object) {}
  Handle(Handle&& other) noexcept
      : api_(other.api_), object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(object_, other.object_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (object_ != nullptr && !is_forked_child()) (api_->*Release)(object_);
  }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  const Api* api_ = nullptr;
  T object_ = nullptr;
};

using ContextHandle = Handle<cl_context, &Api::clReleaseContext>;
using QueueHandle = Handle<cl_command_queue, &Api::clReleaseCommandQueue>;
using MemHandle = Handle<cl_mem, &Api::clReleaseMemObject>;
using ProgramHandle = Handle<cl_program, &Api::clReleaseProgram>;
using KernelHandle = Handle<cl_kernel, &Api::clReleaseKernel>;
using EventHandle = Handle<cl_event, &Api::clReleaseEvent>;

}  // namespace clgpu::cl
