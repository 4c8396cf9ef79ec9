// Errors as fields: of what is thrown, runtimes pass on no more than the sentence.
#pragma once

#include <exception>
#include <string>

namespace clgpu::delegate {

struct Failure {
  const char* kind = "";  ///< as Python names the exception: "OpenCLError"
  std::string call{};     ///< of an OpenCLError: "clCreateBuffer"
  std::string code{};     ///< what that gave: "CL_OUT_OF_RESOURCES (-5)"
};

Failure failure_of(const std::exception& error);

/// Runs `body`; tells `ledger` of what it throws.
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
