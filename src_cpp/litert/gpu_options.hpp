// LiteRT's own GPU options, as options of the delegate.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace clgpu::litert {

struct GpuOptions {
  std::map<std::string, std::string> options;  ///< of the delegate
  std::vector<std::string> ignored;            ///< keys that are set and have no effect
};

/// Text without the blanks at its ends.
std::string trimmed(const std::string& text);

/// Reads the text that LiteRT hands over: lines `key = value` of TOML.
GpuOptions read_gpu_options(const std::string& toml);

}  // namespace clgpu::litert
