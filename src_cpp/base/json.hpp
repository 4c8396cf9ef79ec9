// A writer of JSON.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "base/writer.hpp"

namespace clgpu {

/// RFC 8259, on one line, independent of the process's locale. Bytes that are not UTF-8 become
/// U+FFFD, numbers that are not finite become null.
class JsonWriter final : public Writer {
 public:
  JsonWriter();

  /// The whole text, once everything has been written.
  std::string str() const { return out_.str(); }

  void begin_object() override;
  void end_object() override;
  void begin_list() override;
  void end_list() override;
  void key(std::string_view name) override;
  void null() override;
  void boolean(bool value) override;
  void integer(std::int64_t value) override;
  void number(double value) override;
  void text(std::string_view value) override;

 private:
  void separate();
  void quote(std::string_view value);

  std::ostringstream out_;
  bool first_ = true;  // of an object or a list, or after a key: no comma
};

template <class T>
std::string to_json(const T& value) {
  JsonWriter writer;
  write(writer, value);
  return writer.str();
}

}  // namespace clgpu
