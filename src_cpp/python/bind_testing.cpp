// Doors for tests: kernel sources, the memory layout, half conversion.
#include <pybind11/stl.h>

#include <map>
#include <optional>

#include "base/half.hpp"
#include "kernel/sources.hpp"
#include "plan/memory.hpp"
#include "python/bind.hpp"

namespace clgpu::python {
namespace py = pybind11;

void bind_testing(py::module_& module) {
  module.def(
      "kernel_sources",
      [] {
        std::map<std::string, std::string> texts;
        for (const std::string& file : kernel::source_files())
          texts[file] = kernel::source_text(file);
        return texts;
      },
      "Text of every embedded kernel file by path.");
  module.def(
      "override_kernel_source",
      [](const std::string& path, const std::optional<std::string>& text) {
        kernel::override_source(path, text.value_or(""));
      },
      py::arg("path"), py::arg("text"), "Replaces a kernel file until called with None.");
  module.def(
      "lay_out",
      [](const std::vector<std::tuple<std::int64_t, int, int>>& blocks, std::int64_t max_bytes,
         std::int64_t alignment, bool offsets) {
        std::vector<plan::Block> list;
        for (const auto& [bytes, first, last] : blocks) list.push_back({bytes, first, last});
        const plan::Layout layout = plan::lay_out(list, {max_bytes, alignment, offsets});
        py::dict result;
        result["objects"] = layout.objects;
        result["offsets"] = layout.offsets;
        result["bytes"] = layout.bytes;
        result["strategy"] = layout.strategy;
        result["bound"] = plan::lower_bound(list);
        return result;
      },
      py::arg("blocks"), py::arg("max_bytes") = INT64_MAX, py::arg("alignment") = 1,
      py::arg("offsets") = true,
      "Object and offset of each block (bytes, first, last), and the bytes of each object.");
  module.def("float_to_half", &float_to_half, py::arg("value"), "Bits of the nearest half.");
  module.def("half_to_float", &half_to_float, py::arg("bits"),
             "Value of a half given by its bits.");
}

}  // namespace clgpu::python
