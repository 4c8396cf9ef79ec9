// Doors for tests: kernel sources.
#include <pybind11/stl.h>

#include <map>
#include <optional>

#include "kernel/sources.hpp"
#include "python/bind.hpp"

namespace clgpu::python {
namespace py = pybind11;

void bind_testing(py::module_& module) {
  module.def(
      "kernel_sources",
      [] {
        std::map<std::string, std::string> texts;
        for (const std::string& file : kernel::source_files()) texts[file] = kernel::source_text(file);
        return texts;
      },
      "Text of every embedded kernel file by path.");
  module.def(
      "override_kernel_source",
      [](const std::string& path, const std::optional<std::string>& text) {
        kernel::override_source(path, text.value_or(""));
      },
      py::arg("path"), py::arg("text"), "Replaces a kernel file until called with None.");
}

}  // namespace clgpu::python
