// Errors that come from an OpenCL driver.
#pragma once

#include <string>

#include "base/error.hpp"
#include "cl/api.hpp"

namespace clgpu::cl {

/// "CL_OUT_OF_RESOURCES (-5)".
std::string error_name(cl_int code);

/// A call failed. The message says which call, the code, and on what.
class OpenCLError : public clgpu::Error {
 public:
  OpenCLError(const std::string& call, cl_int code, const std::string& where)
      : Error(call + ": " + error_name(code) + (where.empty() ? "" : " in " + where)),
        code_(code) {}
  cl_int code() const { return code_; }
  /// Memory is short on the device or on the host: some other kernel would fare no better.
  bool out_of_memory() const {
    return code_ == CL_MEM_OBJECT_ALLOCATION_FAILURE || code_ == CL_OUT_OF_HOST_MEMORY;
  }

 private:
  cl_int code_;
};

/// A program does not build; carries the compiler's log.
class BuildError : public clgpu::Error {
 public:
  BuildError(const std::string& file, const std::string& options, std::string log)
      : Error("kernel file " + file + " does not build with " + options + ": " + log),
        log_(std::move(log)) {}
  const std::string& log() const { return log_; }

 private:
  std::string log_;
};

inline void check(cl_int code, const char* call, const std::string& where = {}) {
  if (code != CL_SUCCESS) throw OpenCLError(call, code, where);
}

}  // namespace clgpu::cl
