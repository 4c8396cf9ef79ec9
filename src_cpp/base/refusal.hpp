// A refusal is an ordinary value: why a node stays on the CPU, in words a user can act on.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace clgpu {

struct Refusal {
  std::string reason;
};

/// Either a T or the reason why there is none.
template <class T>
class OrRefusal {
 public:
  OrRefusal(T value) : state_(std::move(value)) {}
  OrRefusal(Refusal refusal) : state_(std::move(refusal)) {}

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  const T& operator*() const { return std::get<T>(state_); }
  T& operator*() { return std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }
  const std::string& reason() const { return std::get<Refusal>(state_).reason; }

 private:
  std::variant<T, Refusal> state_;
};

}  // namespace clgpu

/// Inside a function that returns OrRefusal<...>: leave with `reason` when `condition` holds.
#define CLGPU_REFUSE_IF(condition, reason)          \
  do {                                              \
    if (condition) return ::clgpu::Refusal{reason}; \
  } while (0)
