#include "delegate/failure.hpp"

#include <new>

#include "base/error.hpp"
#include "cl/error.hpp"

namespace clgpu::delegate {
namespace {

template <class Kind>
bool is(const std::exception& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

}  // namespace

Failure failure_of(const std::exception& error) {
  if (const auto* opencl = dynamic_cast<const cl::OpenCLError*>(&error))
    return {"OpenCLError", opencl->call(), cl::error_name(opencl->code())};
  if (const auto* build = dynamic_cast<const cl::BuildError*>(&error))
    return {"BuildError", "clBuildProgram", cl::error_name(build->code())};
  if (is<OptionError>(error)) return {"OptionError"};
  if (is<ShapeError>(error)) return {"ShapeError"};
  if (is<DeviceError>(error)) return {"DeviceError"};
  if (is<InternalError>(error)) return {"InternalError"};
  if (is<std::bad_alloc>(error)) return {"MemoryError"};
  return {"ClgpuError"};
}

}  // namespace clgpu::delegate
