// C++ exceptions as Python classes of the same names.
#include "base/error.hpp"
#include "cl/error.hpp"
#include "python/bind.hpp"

namespace clgpu::python {
namespace py = pybind11;

void bind_errors(py::module_& module) {
  // Read by the translator below; leaked, since the interpreter ends before static destructors run.
  static auto& base = *new py::object;
  static auto& option = *new py::object;
  static auto& build = *new py::object;
  base = py::exception<Error>(module, "ClgpuError", PyExc_RuntimeError);
  option = py::exception<OptionError>(module, "OptionError",
                                      py::make_tuple(base, py::handle(PyExc_ValueError)));
  build = py::exception<cl::BuildError>(module, "BuildError", base);
  py::register_exception<ShapeError>(module, "ShapeError", base);
  py::register_exception<DeviceError>(module, "DeviceError", base);
  py::register_exception<InternalError>(module, "InternalError", base);
  py::register_exception<cl::OpenCLError>(module, "OpenCLError", base);
  // Registered last, so it is tried first.
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const cl::BuildError& error) {
      py::object value = build(error.what());
      value.attr("log") = error.log();
      PyErr_SetObject(build.ptr(), value.ptr());
    } catch (const OptionError& error) {
      PyErr_SetString(option.ptr(), error.what());
    } catch (const DeviceError&) {
      throw;
    } catch (const ShapeError&) {
      throw;
    } catch (const InternalError&) {
      throw;
    } catch (const cl::OpenCLError&) {
      throw;
    } catch (const Error& error) {
      PyErr_SetString(base.ptr(), error.what());
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError, "out of host memory");
    }
  });
}

}  // namespace clgpu::python
