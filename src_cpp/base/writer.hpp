// The interface of writers of structured data: one description yields JSON and Python's
// dictionaries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace clgpu {

/// Takes one value: an object, a list of values, or a plain one. Within an object, a key precedes
/// each value. Texts may come from a driver, so they may not be UTF-8.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual void begin_object() = 0;
  virtual void end_object() = 0;
  virtual void begin_list() = 0;
  virtual void end_list() = 0;
  virtual void key(std::string_view name) = 0;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void integer(std::int64_t value) = 0;
  virtual void number(double value) = 0;
  virtual void text(std::string_view value) = 0;
};

/// Writes a bool, an integer, a float, or a type that converts to std::string_view. Other types
/// have an overload in their namespace.
template <class T>
void write(Writer& writer, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    writer.boolean(value);
  } else if constexpr (std::is_integral_v<T>) {
    writer.integer(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    writer.number(static_cast<double>(value));
  } else {
    writer.text(value);
  }
}

template <class T>
void write(Writer& writer, const std::optional<T>& value) {
  if (value) {
    write(writer, *value);
  } else {
    writer.null();
  }
}

template <class T>
void write(Writer& writer, const std::vector<T>& values) {
  writer.begin_list();
  for (const T& value : values) write(writer, value);
  writer.end_list();
}

template <class T>
void field(Writer& writer, std::string_view key, const T& value) {
  writer.key(key);
  write(writer, value);
}

/// `fields()` writes the keys and values.
template <class Fields>
void write_object(Writer& writer, Fields fields) {
  writer.begin_object();
  fields();
  writer.end_object();
}

/// `item(value)` writes one value for each of `values`.
template <class Values, class Item>
void write_list(Writer& writer, std::string_view key, const Values& values, Item item) {
  writer.key(key);
  writer.begin_list();
  for (const auto& value : values) item(value);
  writer.end_list();
}

}  // namespace clgpu
