// C++ objects that Python holds.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "cl/fork.hpp"
#include "python/bind.hpp"

namespace clgpu::python {

/// Holds an object for Python. In a process that was forked after OpenCL was used, the object is
/// never destroyed: only the parent may end what it has in flight or on the device.
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

/// Creates an object for Python while other threads use Python. The Python object is created first
/// and then gets the C++ object, which cannot fail: pybind11 frees a returned object twice if there
/// is no memory for the Python object.
template <class T, class Make>
pybind11::object hold(Make make) {
  pybind11::object held = pybind11::cast(Held<T>());
  auto& place = held.cast<Held<T>&>();
  const WithoutPython released;
  place.object = make();
  return held;
}

}  // namespace clgpu::python
