// Constants in the type that the device stores them as.
#pragma once

#include <cstdint>

#include "ir/tensor.hpp"

namespace clgpu::runtime {

/// Whether its bytes are those that the device stores.
bool is_stored_as(const ir::Constant& constant, DType storage);

/// Writes `count` of its elements from `first` on as they are stored: floats, halves and bfloats as
/// another one of these types, integers of 4 or 2 bits as int8.
void store(const ir::Constant& constant, DType storage, std::size_t first, std::size_t count,
           std::uint8_t* to);

}  // namespace clgpu::runtime
