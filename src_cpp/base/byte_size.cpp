#include "base/byte_size.hpp"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace clgpu {
namespace {

// Bytes of a unit in lower case; 0 if there is no such unit.
double unit_bytes(const std::string& unit) {
  if (unit.empty() || unit == "b") return 1;
  const std::string prefixes = "kmgt";
  const auto power = prefixes.find(unit[0]);
  if (power == std::string::npos) return 0;
  const double base = unit.substr(1) == "ib" ? 1024 : unit.substr(1) == "b" ? 1000 : 0;
  return base == 0 ? 0 : std::pow(base, static_cast<double>(power + 1));
}

}  // namespace

std::optional<std::int64_t> parse_byte_size(const std::string& text) {
  // Only digits and a point: strtod would also accept "inf", "0x10" and the locale's separators.
  const std::string digits = text.substr(0, text.find_first_not_of("0123456789."));
  if (digits.find_first_of("0123456789") == std::string::npos) return std::nullopt;
  if (digits.find('.') != digits.rfind('.')) return std::nullopt;
  std::string unit;
  if (const auto begin = text.find_first_not_of(' ', digits.size()); begin != std::string::npos) {
    for (const char c : text.substr(begin))
      unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const auto point = digits.find('.');
  double number = 0, digit_value = 1;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i == point) continue;
    if (point != std::string::npos && i > point) {
      digit_value /= 10;
      number += (digits[i] - '0') * digit_value;
    } else {
      number = number * 10 + (digits[i] - '0');
    }
  }
  const double bytes = std::floor(number * unit_bytes(unit) + 1e-6);
  if (bytes < 1 || bytes > 9e18) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::string byte_size(std::int64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  const std::string exact = std::to_string(bytes) + " bytes";
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  if (unit == 0) return exact;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s",
                value < 10    ? 2
                : value < 100 ? 1
                              : 0,
                value, units[unit]);
  return std::string(text) + " (" + exact + ")";
}

}  // namespace clgpu
