// Writes Python objects: dictionaries, lists, plain values.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/writer.hpp"
#include "python/bind.hpp"

namespace clgpu::python {

/// The caller must hold the GIL.
class PythonWriter final : public Writer {
 public:
  /// The complete value, after all of it has been written.
  pybind11::object result() const { return result_; }

  void begin_object() override { open(pybind11::dict()); }
  void end_object() override { close(); }
  void begin_list() override { open(pybind11::list()); }
  void end_list() override { close(); }
  void key(std::string_view name) override { key_ = shared(name); }
  void null() override { add(pybind11::none()); }
  void boolean(bool value) override { add(pybind11::bool_(value)); }
  void integer(std::int64_t value) override { add(pybind11::int_(value)); }
  void number(double value) override { add(pybind11::float_(value)); }
  void text(std::string_view value) override { add(shared(value)); }

 private:
  struct Open {
    pybind11::object container, key;  // in the one around it
  };

  void open(pybind11::object container);
  void close();
  void add(const pybind11::object& value);
  const pybind11::str& shared(std::string_view bytes);

  std::vector<Open> open_;
  pybind11::object key_, result_;
  std::unordered_map<std::string, pybind11::str> texts_;  // rows repeat most of theirs
};

template <class T>
pybind11::object to_python(const T& value) {
  PythonWriter writer;
  write(writer, value);
  return writer.result();
}

}  // namespace clgpu::python
