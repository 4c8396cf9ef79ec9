// The extension clgpu_delegate._core. The same shared object is the TFLite plugin
// (delegate/doors/abi.cpp).
#include "python/bind.hpp"

PYBIND11_MODULE(_core, module) {
  module.doc() = "OpenCL delegate for TensorFlow Lite: the C++ core.";
  module.attr("__version__") = CLGPU_VERSION;
  clgpu::python::bind_errors(module);
  clgpu::python::bind_devices(module);
  clgpu::python::bind_delegate(module);
  clgpu::python::bind_stream(module);
  clgpu::python::bind_programs(module);
  clgpu::python::bind_store(module);
  clgpu::python::bind_testing(module);
  clgpu::python::bind_ir(module);
  clgpu::python::bind_json(module);
  clgpu::python::bind_placement(module);
  clgpu::python::bind_lending(module);
  clgpu::python::bind_litert(module);
}
