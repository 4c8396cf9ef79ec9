// The parts of the Python module.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <string>

namespace clgpu::python {

/// A string that may hold what a driver wrote, a build log say: they do not promise UTF-8.
inline pybind11::str text(const std::string& bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeUTF8(bytes.data(), size, "replace"));
}

/// Lets other threads use Python while it lives. Where Python has ended meanwhile, CPython
/// before 3.14 ends the thread as it asks for Python again, which unwinds the stack: nothing may be
/// destroyed on that way, since objects of Python would be. So the thread waits for the end of the
/// process, as CPython 3.14 has it do. (pybind11's own class ends the process there.)
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
