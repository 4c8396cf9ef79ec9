#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <utility>

namespace clgpu {
namespace {

// Length in bytes of the UTF-8 sequence at the beginning of `text`. For an invalid sequence, the
// negated number of bytes to replace as one (Unicode, chapter 3.9: maximal subparts).
int sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return -1;
  const int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The range of the second byte excludes overlong forms, surrogates, and code points that are too
  // large.
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

std::uint32_t code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0xFFU >> (sequence.size() + 1));
  for (std::size_t i = 1; i < sequence.size(); ++i) code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

// Unicode's categories Cc, Cf, Zl and Zp, as far as a terminal may interpret or hide them.
bool is_invisible(std::uint32_t code) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kRanges[] = {
      {0x00, 0x1F},       {0x7F, 0x9F},     {0xAD, 0xAD},       {0x600, 0x605},
      {0x61C, 0x61C},     {0x6DD, 0x6DD},   {0x70F, 0x70F},     {0x180E, 0x180E},
      {0x200B, 0x200F},   {0x2028, 0x202E}, {0x2060, 0x2064},   {0x2066, 0x206F},
      {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB}, {0x1D173, 0x1D17A}, {0xE0001, 0xE0001},
      {0xE0020, 0xE007F},
  };
  return std::any_of(std::begin(kRanges), std::end(kRanges), [&](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

std::string escape(std::uint32_t code) {
  char text[12];
  const char* form = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(text, sizeof text, form, code);
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string line;
  line.reserve(valid.size());
  for (std::string_view left = valid; !left.empty();) {
    const auto bytes = static_cast<std::size_t>(sequence(left));
    const std::string_view character = left.substr(0, bytes);
    const std::uint32_t code = code_point(character);
    line += is_invisible(code) ? escape(code) : std::string(character);
    left.remove_prefix(bytes);
  }
  return line;
}

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
