// Errors as fields, because runtimes pass on only the message of an exception.
#pragma once

#include <exception>
#include <string>

namespace clgpu::delegate {

struct Failure {
  const char* kind = "";  ///< as Python names the exception: "OpenCLError"
  std::string call{};     ///< of an OpenCLError: "clCreateBuffer"
  std::string code{};     ///< its result: "CL_OUT_OF_RESOURCES (-5)"
};

Failure failure_of(const std::exception& error);

/// Runs `body`; stores its exception in `ledger`.
template <class Ledger, class Body>
auto recording_failure(Ledger& ledger, Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    ledger.fail(failure_of(error));
    throw;
  }
}

}  // namespace clgpu::delegate
