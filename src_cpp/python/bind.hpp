// The parts of the Python module.
#pragma once

#include <pybind11/pybind11.h>

namespace clgpu::python {

void bind_errors(pybind11::module_& module);
void bind_devices(pybind11::module_& module);
void bind_delegate(pybind11::module_& module);
void bind_testing(pybind11::module_& module);

}  // namespace clgpu::python
