// Tensors that the pass choose_storage leaves in float, and a switch of that for tests.
#pragma once

#include "ir/tensor.hpp"

namespace clgpu::passes {

/// Whether a tensor has so few elements that it stays float.
bool is_small(const ir::Tensor& tensor);

/// Whether small tensors and constants, too, are stored as a precision says, in graphs that are
/// planned from now on.
void pretend_no_small_tensors(bool is_on);

}  // namespace clgpu::passes
