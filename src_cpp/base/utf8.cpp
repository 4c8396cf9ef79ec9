#include "base/utf8.hpp"

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

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const int length = sequence(text);
    const auto bytes = static_cast<std::size_t>(length < 0 ? -length : length);
    valid += length < 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return valid;
}

}  // namespace clgpu
