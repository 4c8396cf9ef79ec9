// Errors of an OpenCL driver.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "cl/api.hpp"

namespace clgpu::cl {

/// "CL_OUT_OF_RESOURCES (-5)".
std::string error_name(cl_int code);

/// Memory is short on the device or on the host: another kernel would fail, too.
inline bool is_out_of_memory(cl_int code) {
  return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
}

/// The cause may be the state of the machine and not the arguments: the same call may succeed
/// later.
inline bool may_pass(cl_int code) {
  return is_out_of_memory(code) || code == CL_OUT_OF_RESOURCES || code == CL_DEVICE_NOT_AVAILABLE;
}

/// A call failed. The message says which call, the code, and on what.
class OpenCLError : public clgpu::Error {
 public:
  OpenCLError(std::string_view call, cl_int code, std::string_view where)
      : Error(message(call, code, where)), call_(call), code_(code) {}
  const std::string& call() const { return call_; }
  cl_int code() const { return code_; }
  bool out_of_memory() const { return is_out_of_memory(code_); }
  bool may_pass() const { return cl::may_pass(code_); }

 private:
  static std::string message(std::string_view call, cl_int code, std::string_view where) {
    std::string text(call);
    text += ": " + error_name(code);
    if (!where.empty()) text.append(" in ").append(where);
    return text;
  }

  std::string call_;
  cl_int code_;
};

/// A program does not build; contains the compiler's log.
class BuildError : public clgpu::Error {
 public:
  BuildError(const std::string& file, const std::string& options, cl_int code,
             const std::string& log)
      : Error("kernel file " + file + " does not build with " + options + ": " + error_name(code) +
              "\n" + log),
        code_(code),
        log_(error_name(code) + "\n" + log) {}
  cl_int code() const { return code_; }
  const std::string& log() const { return log_; }

 private:
  cl_int code_;
  std::string log_;
};

/// Allocates nothing if the call has succeeded.
inline void check(cl_int code, const char* call, std::string_view where = {}) {
  if (code != CL_SUCCESS) throw OpenCLError(call, code, where);
}

}  // namespace clgpu::cl
