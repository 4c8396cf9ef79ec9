// Constants of floats that passes make integers of.
#pragma once

#include "ir/tensor.hpp"

namespace clgpu::passes {

/// Element i of a constant of floats of 16 or 32 bits.
float element_of(const ir::Constant& constant, std::size_t i);

/// Why a tensor is no constant of finite floats; empty if it is.
const char* problem_of_floats(const ir::Tensor& tensor);

}  // namespace clgpu::passes
