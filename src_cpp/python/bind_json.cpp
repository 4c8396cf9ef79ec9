// For tests: the JSON of the C library, which no Python code reads.
#include "base/json.hpp"
#include "delegate/tell/telling.hpp"
#include "python/bind.hpp"
#include "python/native_delegate.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

// Writes bytes as texts, valid or not.
void write_value(Writer& to, const py::handle& value) {
  if (value.is_none()) {
    to.null();
  } else if (py::isinstance<py::bool_>(value)) {
    to.boolean(value.cast<bool>());
  } else if (py::isinstance<py::int_>(value)) {
    to.integer(value.cast<std::int64_t>());
  } else if (py::isinstance<py::float_>(value)) {
    to.number(value.cast<double>());
  } else if (py::isinstance<py::dict>(value)) {
    write_object(to, [&] {
      for (const auto& [key, item] : value.cast<py::dict>()) {
        to.key(key.cast<std::string>());
        write_value(to, item);
      }
    });
  } else if (py::isinstance<py::list>(value)) {
    to.begin_list();
    for (const py::handle& item : value) write_value(to, item);
    to.end_list();
  } else {
    to.text(value.cast<std::string>());
  }
}

}  // namespace

void bind_json(py::module_& module) {
  module.def(
      "json_of",
      [](const py::object& value) {
        JsonWriter writer;
        write_value(writer, value);
        return py::bytes(writer.str());
      },
      py::arg("value"), "JSON of a value made of dict, list, bytes, str, float, int, bool, None.");
  module.def(
      "explain_json",
      [](const NativeDelegate& self) {
        return py::bytes(to_json(delegate::explain(self.state().target, self.state().report())));
      },
      py::arg("delegate"), "The result of explain() as JSON.");
  module.def(
      "profile_json",
      [](NativeDelegate& self) {
        return py::bytes(to_json(delegate::recorded_profile(
            self.state().target, self.state().ledger, /*with_peaks=*/true)));
      },
      py::arg("delegate"), "The result of profile() as JSON.");
}

}  // namespace clgpu::python
