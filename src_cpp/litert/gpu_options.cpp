#include "litert/gpu_options.hpp"

#include <sstream>

namespace clgpu::litert {
namespace {

std::string unquoted(const std::string& value) {
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

// LiteRT's Python package also writes switches that the user has not set.
bool is_unset(const std::string& value) {
  return value.empty() || value == "false" || value == "0" || value == "[]";
}

}  // namespace

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

GpuOptions read_gpu_options(const std::string& toml) {
  GpuOptions result;
  bool keeps_programs = true;
  std::string folder;
  std::istringstream lines(toml);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = trimmed(line.substr(0, equals));
    const std::string value = unquoted(trimmed(line.substr(equals + 1)));
    if (key == "precision") {
      if (value == "1" || value == "3") {  // 3: with sums in float, which ours always are
        result.options["precision"] = "fp16";
      } else if (value == "2") {
        result.options["precision"] = "fp32";
      } else if (value != "0") {
        result.ignored.push_back(key);
      }
    } else if (key == "serialization_dir") {
      folder = value;
    } else if (key == "serialize_program_cache") {
      keeps_programs = value != "false";
    } else if (key == "preferred_device_substr") {
      // A number would be the index of a device here, not a part of its name.
      const bool is_name = value.find_first_not_of("0123456789") != std::string::npos;
      if (is_name) {
        result.options["device"] = value;
      } else if (!value.empty()) {
        result.ignored.push_back(key);
      }
    } else if (!is_unset(value)) {
      result.ignored.push_back(key);
    }
  }
  if (!keeps_programs) {
    result.options["cache"] = "off";
  } else if (!folder.empty()) {
    result.options["cache"] = folder + "/clgpu_delegate.sqlite";
  }
  return result;
}

}  // namespace clgpu::litert
