// Delegates that LiteRT requests, and their options.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"

namespace clgpu::litert {

using OptionTexts = std::map<std::string, std::string>;

/// Options for all models of the environments that have this runtime library folder.
void offer(const std::string& folder, const OptionTexts& options);
/// Removes them; does nothing if there are none.
void withdraw(const std::string& folder) noexcept;

struct Made {
  const TfLiteDelegate* delegate;
  OptionTexts options;
};

/// Existing delegates of LiteRT's models, the oldest first.
std::vector<Made> living();

}  // namespace clgpu::litert
