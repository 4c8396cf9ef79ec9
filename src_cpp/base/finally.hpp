// Runs a function at the end of a scope, also after an exception.
#pragma once

#include <utility>

namespace clgpu {

/// Calls a function, which must not throw, in its destructor.
template <class Function>
class Finally {
 public:
  explicit Finally(Function function) : function_(std::move(function)) {}
  ~Finally() { function_(); }
  Finally(const Finally&) = delete;
  Finally& operator=(const Finally&) = delete;

 private:
  Function function_;
};

}  // namespace clgpu
