#include "python/to_python.hpp"

#include <utility>

namespace clgpu::python {
namespace py = pybind11;

void PythonWriter::open(py::object container) { open_.push_back({std::move(container), key_}); }

void PythonWriter::close() {
  const Open closed = std::move(open_.back());
  open_.pop_back();
  key_ = closed.key;
  add(closed.container);
}

void PythonWriter::add(const py::object& value) {
  if (open_.empty()) {
    result_ = value;
  } else if (py::object& container = open_.back().container; py::isinstance<py::dict>(container)) {
    container[key_] = value;
  } else {
    container.cast<py::list>().append(value);
  }
}

const py::str& PythonWriter::shared(std::string_view bytes) {
  const auto [found, is_new] = texts_.try_emplace(std::string(bytes));
  if (is_new) found->second = python::text(found->first);
  return found->second;
}

}  // namespace clgpu::python
