// Constants in the type that the device stores them as.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/tensor.hpp"

namespace clgpu::runtime {

/// The bytes of a constant of floats, halves or bfloats as another one of these types.
std::vector<std::uint8_t> bytes_as(const ir::Constant& constant, DType storage);

}  // namespace clgpu::runtime
