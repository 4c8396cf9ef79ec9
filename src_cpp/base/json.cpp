#include "base/json.hpp"

#include <cmath>
#include <limits>
#include <locale>

#include "base/utf8.hpp"

namespace clgpu {
JsonWriter::JsonWriter() {
  out_.exceptions(std::ios_base::badbit);  // an incomplete text is an error: out of memory
  out_.imbue(std::locale::classic());
  out_.precision(std::numeric_limits<double>::max_digits10);
}

void JsonWriter::separate() {
  if (!first_) out_ << ',';
  first_ = false;
}

void JsonWriter::begin_object() {
  separate();
  out_ << '{';
  first_ = true;
}

void JsonWriter::end_object() {
  out_ << '}';
  first_ = false;
}

void JsonWriter::begin_list() {
  separate();
  out_ << '[';
  first_ = true;
}

void JsonWriter::end_list() {
  out_ << ']';
  first_ = false;
}

void JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  out_ << ':';
  first_ = true;
}

void JsonWriter::null() {
  separate();
  out_ << "null";
}

void JsonWriter::boolean(bool value) {
  separate();
  out_ << (value ? "true" : "false");
}

void JsonWriter::integer(std::int64_t value) {
  separate();
  out_ << value;
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) {
    null();
    return;
  }
  separate();
  out_ << value;
}

void JsonWriter::text(std::string_view value) {
  separate();
  quote(value);
}

void JsonWriter::quote(std::string_view value) {
  static const char kHex[] = "0123456789abcdef";
  out_ << '"';
  for (const char c : valid_utf8(value)) {
    if (c == '"' || c == '\\') {
      out_ << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out_ << "\\u00" << kHex[c >> 4] << kHex[c & 15];
    } else {
      out_ << c;
    }
  }
  out_ << '"';
}

}  // namespace clgpu
