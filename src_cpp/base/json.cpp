#include "base/json.hpp"

#include <cmath>
#include <limits>
#include <locale>

namespace clgpu {
namespace {

// Bytes of the UTF-8 sequence that `text` begins with, or, negated, of what has begun as one and is
// replaced as a whole (Unicode, chapter 3.9: maximal subparts).
int sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return -1;
  const int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's range leaves out longer forms than needed, surrogates, and what is too large.
  unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (int i = 1; i < length; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (at >= text.size() || byte(at) < low || byte(at) > high) return -i;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

}  // namespace

JsonWriter::JsonWriter() {
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
  while (!value.empty()) {
    const int length = sequence(value);
    const char c = value.front();
    if (length < 0) {
      out_ << "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out_ << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out_ << "\\u00" << kHex[c >> 4] << kHex[c & 15];
    } else {
      out_ << value.substr(0, static_cast<std::size_t>(length));
    }
    value.remove_prefix(static_cast<std::size_t>(length < 0 ? -length : length));
  }
  out_ << '"';
}

}  // namespace clgpu
