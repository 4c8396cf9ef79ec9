// Use of the device's dot products of int8 in a launch: kernels/common/dot8.cl.
#pragma once

#include <string>

#include "base/device_info.hpp"
#include "kernel/launch.hpp"

namespace clgpu::kernel {

/// The build flags that a form of DOT8_ADD needs; empty if it needs none.
inline std::string dot8_flags(Dot8 form) {
  // Intel's compiler has the functions of cl_khr_integer_dot_product from OpenCL C 2.0 on.
  return form == Dot8::kKhronos ? "-cl-std=CL3.0" : "";
}

/// Sets the macro DOT8 and the build flags with which DOT8_ADD uses the device's own instruction.
inline Launch& set_dot8(Launch& launch, Dot8 form) {
  const std::string flags = dot8_flags(form);
  if (!flags.empty()) launch.build_flags += (launch.build_flags.empty() ? "" : " ") + flags;
  return launch.macro("DOT8", static_cast<int>(form));
}

}  // namespace clgpu::kernel
