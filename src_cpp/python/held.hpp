// Objects of C++ that Python holds.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

namespace clgpu::python {

/// What Python holds of an object.
template <class T>
struct Held {
  std::shared_ptr<T> object;
};

/// Makes an object, without the interpreter's lock, for Python to hold. Python's side is made first
/// and then given the object, which cannot fail: pybind11 frees a returned object twice when there
/// is no memory for Python's side.
template <class T, class Make>
pybind11::object hold(Make make) {
  pybind11::object held = pybind11::cast(Held<T>{});
  auto& place = held.cast<Held<T>&>();
  const pybind11::gil_scoped_release release;
  place.object = make();
  return held;
}

}  // namespace clgpu::python
