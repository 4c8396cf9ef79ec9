// Files: the store, for tests; the search path of SQLite; whether a model is whole; how names from
// outside are displayed.
#include <pybind11/stl.h>

#include <string_view>

#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "ops/family.hpp"
#include "python/bind.hpp"
#include "store/database.hpp"
#include "store/files.hpp"
#include "store/store.hpp"
#include "store/trust.hpp"
#include "tfl/model_file.hpp"
#include "tfl/model_operands.hpp"

namespace clgpu::python {
namespace py = pybind11;

void bind_store(py::module_& module) {
  using store::Store;
  py::class_<Store, std::shared_ptr<Store>>(module, "Store", "Rows of bytes by kind and key.")
      .def(py::init(&Store::open), py::arg("path"), py::arg("limit") = store::kDefaultLimit,
           py::call_guard<WithoutPython>())
      .def_property_readonly("is_on", &Store::is_on)
      .def(
          "get",
          [](Store& self, const std::string& kind, const std::string& key) {
            std::optional<std::string> value;
            {
              const WithoutPython released;
              value = self.get(kind, key);
            }
            return value ? py::object(py::bytes(*value)) : py::object(py::none());
          },
          py::arg("kind"), py::arg("key"))
      .def(
          "put",
          [](Store& self, const std::string& kind, const std::string& key, const py::bytes& value,
             const std::string& label) {
            const std::string bytes = value;
            const WithoutPython released;
            self.put(kind, key, bytes, label);
          },
          py::arg("kind"), py::arg("key"), py::arg("value"), py::arg("label") = "")
      .def("erase", &Store::erase, py::arg("kind"), py::arg("key"))
      .def("notes", [](const Store& self) {
        py::list notes;
        for (const std::string& note : self.notes()) notes.append(text(note));
        return notes;
      });
  using store::Files;
  py::class_<Files, Store, std::shared_ptr<Files>>(module, "FileStore",
                                                   "A Store for where SQLite is missing.")
      .def(py::init([](const std::string& path, std::int64_t limit) {
             return std::make_shared<Files>(path, store::Setting{path, limit, {}});
           }),
           py::arg("path"), py::arg("limit") = store::kDefaultLimit,
           py::call_guard<WithoutPython>());
  module.def(
      "printable", [](const std::string& bytes) { return text(printable(bytes)); }, py::arg("text"),
      "The text as one line, with escapes for characters that cannot be printed safely.");
  module.def("why_untrusted", &store::why_untrusted, py::arg("path"),
             "Why a file must not be used as a cache; empty if it may.");
  module.def(
      "store_table", [] { return std::string(store::kTable); },
      "The statement that makes the only table of a cache.");
  module.def("add_sqlite_library", &store::add_sqlite_library, py::arg("path"),
             "Registers a library that has SQLite in it, or depends on it.");
  module.def(
      "sha256", [](const py::bytes& bytes) { return sha256_hex(std::string(bytes)); },
      py::arg("bytes"), "Hexadecimal SHA-256.");
  module.def(
      "model_file_problem",
      [](const py::bytes& bytes) {
        const std::string_view view = bytes;
        const WithoutPython released;
        return tfl::model_file_problem(reinterpret_cast<const std::uint8_t*>(view.data()),
                                       view.size());
      },
      py::arg("bytes"),
      "The part of a .tflite file that is beyond its end; empty if there is none.");
  module.def(
      "model_operands_problem",
      [](const py::bytes& bytes) {
        const std::string_view view = bytes;
        const py::gil_scoped_release release;
        return tfl::model_operands_problem(reinterpret_cast<const std::uint8_t*>(view.data()),
                                           ops::may_lack);
      },
      py::arg("bytes"),
      "The node of a complete .tflite file that lacks an operand; empty if there is none.");
}

}  // namespace clgpu::python
