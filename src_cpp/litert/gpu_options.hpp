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

/// Reads the text from LiteRT: lines `key = value` of TOML. Throws OptionError if LiteRT does not
/// know a value that has an effect.
GpuOptions read_gpu_options(const std::string& toml);

}  // namespace clgpu::litert
