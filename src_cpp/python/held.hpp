// Objects of C++ that Python holds.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "cl/fork.hpp"
#include "python/bind.hpp"

namespace clgpu::python {

/// What Python holds of an object. In a process that was forked after OpenCL was used, the object
/// is never destroyed: what the parent has in flight, or on the device, is the parent's to end.
template <class T>
struct Held {
  Held() = default;
  Held(Held&&) noexcept = default;
  Held& operator=(Held&&) = delete;
  ~Held() {
    if (cl::is_forked_child()) new (std::nothrow) std::shared_ptr<T>(std::move(object));
  }

  std::shared_ptr<T> object;
};

/// Makes an object, while other threads use Python, for Python to hold. Python's side is made first
/// and then given the object, which cannot fail: pybind11 frees a returned object twice when there
/// is no memory for Python's side.
template <class T, class Make>
pybind11::object hold(Make make) {
  pybind11::object held = pybind11::cast(Held<T>());
  auto& place = held.cast<Held<T>&>();
  const WithoutPython released;
  place.object = make();
  return held;
}

}  // namespace clgpu::python
