// Errors of clgpu_delegate: exceptions for mistakes of a user and failures of a device. An
// unsupported node is not an error but a Refusal (refusal.hpp).
#pragma once

#include <stdexcept>
#include <string>

namespace clgpu {

/// Base of all exceptions thrown by this library.
class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An option is unknown, malformed or out of range; the message lists what is allowed.
class OptionError : public Error {
  using Error::Error;
};

/// Shapes of a node do not fit together (found by a family's shape rule).
class ShapeError : public Error {
 public:
  using Error::Error;
  ShapeError(const std::string& what, int node) : Error(what), node_(node) {}
  /// Index of the node in the model; -1 in the exception that a shape rule throws.
  int node() const { return node_; }

 private:
  int node_ = -1;
};

/// No OpenCL library, platform or device matches the option.
class DeviceError : public Error {
  using Error::Error;
};

/// A broken invariant of this library; carries file (below src_cpp) and line.
class InternalError : public Error {
  using Error::Error;
};

[[noreturn]] inline void throw_internal(const char* file, int line, const std::string& what) {
  // Omit the folders of the machine that built it: they are private and do not help the reader.
  std::string path(file);
  const std::size_t root = path.rfind("src_cpp/");
  if (root != std::string::npos) path.erase(0, root);
  throw InternalError(path + ":" + std::to_string(line) + ": " + what);
}

}  // namespace clgpu

#define CLGPU_CHECK(condition) \
  ((condition) ? void(0) : ::clgpu::throw_internal(__FILE__, __LINE__, "check failed: " #condition))
