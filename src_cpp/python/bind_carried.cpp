// Tensors that stay on the device between inferences.
#include <pybind11/stl.h>

#include "delegate/building/largest.hpp"
#include "delegate/doors/delegate.hpp"
#include "python/bind.hpp"
#include "python/native_delegate.hpp"

namespace clgpu::python {
namespace py = pybind11;
namespace {

std::shared_ptr<delegate::Carriers> carriers_of(const NativeDelegate& self) {
  std::shared_ptr<delegate::Carriers> carriers = self.state().carried.last();
  if (carriers == nullptr) throw Error("no interpreter of the delegate carries a tensor");
  return carriers;
}

int number_of(const NativeDelegate& self, const std::string& name) {
  const auto& all = self.state().target.options.carry;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return static_cast<int>(i);
  }
  throw OptionError("the delegate carries no tensor '" + name + "'");
}

const plan::CarriedForm& form_of(const runtime::CarriedSet& set, int number) {
  const plan::CarriedForm* const form = set.form(number);
  if (form == nullptr)
    throw Error("no graph on the device has used the carried tensor '" + set.name(number) +
                "' yet");
  return *form;
}

py::list carried(const NativeDelegate& self) {
  py::list list;
  const std::shared_ptr<delegate::Carriers> carriers = self.state().carried.last();
  if (carriers == nullptr) return list;
  for (std::size_t i = 0; i < carriers->set()->size(); ++i) {
    const int number = static_cast<int>(i);
    const plan::CarriedForm* const form = carriers->set()->form(number);
    py::dict entry, graphs, copied;
    entry["name"] = text(carriers->set()->name(number));
    entry["shape"] = form == nullptr ? py::object(py::none()) : py::cast(form->shape.dims());
    entry["type"] = form == nullptr ? py::object(py::none()) : py::cast(name_of(form->dtype));
    entry["bytes"] = form == nullptr ? std::size_t{0} : form->bytes();
    for (const auto& [graph, reason] : carriers->told(number)) graphs[py::int_(graph)] = reason;
    entry["graphs"] = graphs;
    for (const auto& [graph, reason] : carriers->copied(number)) copied[py::int_(graph)] = reason;
    entry["copied"] = copied;
    list.append(entry);
  }
  return list;
}

py::bytes read(const NativeDelegate& self, const std::string& name) {
  const auto carriers = carriers_of(self);
  const int number = number_of(self, name);
  const plan::CarriedForm& form = form_of(*carriers->set(), number);
  std::string bytes(form.host_bytes(), '\0');
  {
    const WithoutPython released;
    carriers->set()->read(number, bytes.data());
  }
  return bytes;
}

void write(const NativeDelegate& self, const std::string& name, const py::bytes& value) {
  const auto carriers = carriers_of(self);
  const int number = number_of(self, name);
  const plan::CarriedForm& form = form_of(*carriers->set(), number);
  const auto bytes = static_cast<std::string>(value);
  if (bytes.size() != form.host_bytes())
    throw OptionError("the value of the carried tensor '" + name + "' has " +
                      std::to_string(bytes.size()) + " bytes; " +
                      std::to_string(form.host_bytes()) + " are needed");
  const WithoutPython released;
  carriers->forget_found(number);
  carriers->set()->write(number, bytes.data());
}

void clear(const NativeDelegate& self) {
  const std::shared_ptr<delegate::Carriers> carriers = self.state().carried.last();
  if (carriers == nullptr) return;
  const WithoutPython released;
  for (std::size_t i = 0; i < carriers->set()->size(); ++i) {
    carriers->forget_found(static_cast<int>(i));
    carriers->set()->clear(static_cast<int>(i));
  }
}

py::tuple largest(NativeDelegate& self, const std::string& name, int count) {
  const auto carriers = carriers_of(self);
  const int number = number_of(self, name);
  delegate::Largest found;
  {
    const WithoutPython released;
    found = delegate::find_largest(self.state(), *carriers, number, count);
  }
  const auto bytes = [](const auto& numbers) {
    return py::bytes(reinterpret_cast<const char*>(numbers.data()),
                     numbers.size() * sizeof(numbers[0]));
  };
  return py::make_tuple(bytes(found.values), bytes(found.indices));
}

}  // namespace

void bind_carried(py::class_<NativeDelegate>& native) {
  native
      .def("carried", &carried,
           "Name, shape, type, bytes on the device, and by graph why it is not carried there, of "
           "each carried tensor of the interpreter served last.")
      .def("read_carried", &read, py::arg("name"), "The elements of a carried tensor.")
      .def("write_carried", &write, py::arg("name"), py::arg("value"),
           "Sets the elements of a carried tensor.")
      .def("largest_carried", &largest, py::arg("name"), py::arg("count"),
           "The largest elements of each row of a carried tensor, floats and their indices; with a "
           "count of 0 the sum of each row and the index of its largest.")
      .def("clear_carried", &clear, "Makes all elements of all carried tensors zero.");
}

}  // namespace clgpu::python
