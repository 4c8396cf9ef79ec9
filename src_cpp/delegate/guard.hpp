// The boundary between C++ and the C ABI, which no exception crosses.
#pragma once

#include <exception>
#include <new>

namespace clgpu::delegate {

/// Runs `body`; when it throws, hands the message to `report` and returns `on_error`.
template <class Result, class Report, class Body>
Result guarded(Result on_error, Report report, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    try {
      report("out of host memory");
    } catch (...) {
    }
  } catch (const std::exception& error) {
    try {
      report(error.what());
    } catch (...) {
    }
  } catch (...) {
    try {
      report("unknown exception");
    } catch (...) {
    }
  }
  return on_error;
}

}  // namespace clgpu::delegate
