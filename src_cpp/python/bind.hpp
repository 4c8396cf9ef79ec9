// The parts of the Python module.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace clgpu::python {

/// A string that may hold what a driver wrote, a build log say: they do not promise UTF-8.
inline pybind11::str text(const std::string& bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeUTF8(bytes.data(), size, "replace"));
}

void bind_errors(pybind11::module_& module);
void bind_devices(pybind11::module_& module);
void bind_delegate(pybind11::module_& module);
void bind_stream(pybind11::module_& module);
void bind_programs(pybind11::module_& module);
void bind_store(pybind11::module_& module);
void bind_testing(pybind11::module_& module);
void bind_json(pybind11::module_& module);
void bind_placement(pybind11::module_& module);

}  // namespace clgpu::python
