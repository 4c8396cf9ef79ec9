#include "litert/gpu_options.hpp"

#include <sstream>

#include "base/error.hpp"

namespace clgpu::litert {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string unquoted(const std::string& value) {
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

// LiteRT's Python package also writes switches that the user has not set.
bool is_unset(const std::string& value) {
  return value.empty() || value == "false" || value == "0" || value == "[]";
}

}  // namespace

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
      if (value == "1") {
        result.options["precision"] = "fp16";
      } else if (value == "2") {
        result.options["precision"] = "fp32";
      } else if (value != "0") {
        throw OptionError("LiteRT's GPU option 'precision' is " + value +
                          "; allowed: 0 (default), 1 (fp16), 2 (fp32)");
      }
    } else if (key == "serialization_dir") {
      folder = value;
    } else if (key == "serialize_program_cache") {
      keeps_programs = value != "false";
    } else if (key == "preferred_device_substr") {
      if (!value.empty()) result.options["device"] = value;
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
