// The kernel texts and the programs built from them: the contents of a bug capsule.
#include <pybind11/stl.h>

#include <map>
#include <optional>

#include "delegate/tell/inspection.hpp"
#include "kernel/bodies.hpp"
#include "kernel/macros.hpp"
#include "kernel/sources.hpp"
#include "python/native_delegate.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::python {
namespace py = pybind11;

py::list programs(const NativeDelegate& self) {
  py::list list;
  for (const runtime::ProgramUse& use : delegate::programs(self.state().ledger)) {
    py::dict entry;
    entry["file"] = use.file;
    entry["entry"] = use.entry;
    entry["options"] = use.options;
    list.append(entry);
  }
  return list;
}

void bind_programs(py::module_& module) {
  module.def(
      "kernel_sources",
      [] {
        std::map<std::string, std::string> texts;
        for (const std::string& file : kernel::source_files())
          texts[file] = kernel::source_text(file);
        return texts;
      },
      "Text of every embedded kernel file by path.");
  module.def("has_cooperating_helper", &kernel::has_cooperating_helper, py::arg("path"),
             "Whether a function of a kernel file, other than its kernels, asks for its work-item "
             "or waits at a barrier.");
  module.def("assembled_source", &kernel::assemble, py::arg("path"),
             "A kernel file with its includes expanded, as it is passed to drivers.");
  module.def(
      "demanded_macros",
      [](const std::string& path) {
        py::list list;
        for (const kernel::DemandedMacro& macro : kernel::demanded_macros(path)) {
          py::dict entry;
          entry["name"] = macro.name;
          entry["file"] = macro.file;
          entry["text"] = macro.text;
          entry["condition"] = macro.condition;
          entry["value"] = macro.value;
          list.append(entry);
        }
        return list;
      },
      py::arg("path"), "The macros that the heads of a kernel file and of its includes demand.");
  module.def("check_macros", &kernel::check_macros, py::arg("path"), py::arg("options"),
             "Raises Error if build options lack a macro that a kernel file demands.");
  module.def(
      "override_kernel_source",
      [](const std::string& path, const std::optional<std::string>& text) {
        kernel::override_source(path, text.value_or(""));
      },
      py::arg("path"), py::arg("text"), "Replaces a kernel file until called with None.");
  module.def("kernel_overrides", &kernel::overridden_sources,
             "The texts that override_kernel_source has put in place, by path.");
}

}  // namespace clgpu::python
