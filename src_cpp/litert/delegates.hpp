// Delegates that LiteRT asked for, and the options that they are made with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"

namespace clgpu::litert {

using OptionTexts = std::map<std::string, std::string>;

/// Options for all models of the environments whose runtime library folder this is.
void offer(const std::string& folder, const OptionTexts& options);
/// Takes them back; does nothing if there are none.
void withdraw(const std::string& folder) noexcept;

struct Made {
  const TfLiteDelegate* delegate;
  OptionTexts options;
};

/// Delegates of LiteRT's models that exist, the oldest first.
std::vector<Made> living();

}  // namespace clgpu::litert
