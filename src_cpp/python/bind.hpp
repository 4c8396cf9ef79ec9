// The parts of the Python module.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <string>

namespace clgpu::python {

/// A string that may contain text from a driver, for example a build log: drivers do not guarantee
/// UTF-8.
inline pybind11::str text(const std::string& bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeUTF8(bytes.data(), size, "replace"));
}

/// Releases the GIL while it lives. If the interpreter has been finalised meanwhile, CPython before
/// 3.14 ends a thread that asks for the GIL again, and unwinds its stack. No destructor may run
/// then, since destructors would destroy Python objects. So the thread waits for the end of the
/// process, as CPython 3.14 makes it do. (With pybind11's own class the process would end there.)
class WithoutPython {
 public:
  WithoutPython() : state_(PyEval_SaveThread()) {}
  ~WithoutPython() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      while (true) pause();
    }
  }
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;

 private:
  PyThreadState* const state_;
};

void bind_errors(pybind11::module_& module);
void bind_devices(pybind11::module_& module);
void bind_delegate(pybind11::module_& module);
void bind_stream(pybind11::module_& module);
void bind_programs(pybind11::module_& module);
void bind_store(pybind11::module_& module);
void bind_testing(pybind11::module_& module);
void bind_ir(pybind11::module_& module);
void bind_json(pybind11::module_& module);
void bind_placement(pybind11::module_& module);
void bind_lending(pybind11::module_& module);
void bind_litert(pybind11::module_& module);

}  // namespace clgpu::python
