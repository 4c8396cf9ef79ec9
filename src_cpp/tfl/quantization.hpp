// Quantisation parameters of a TFLite tensor, checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/refusal.hpp"
#include "ir/tensor.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::tfl {

/// The error in the parameters of a quantised tensor, which the refusal calls `what`; nothing if
/// the tensor is not quantised or its parameters are valid.
/// `int16_zero_points`: int16 may have zero points other than 0.
std::optional<Refusal> check_quantization(const TensorView& tensor, const std::string& what,
                                          bool int16_zero_points);

/// Of an element in the file.
int bits_of(const TensorView& tensor);

/// The elements of a constant of int4 or int2 as int8.
std::vector<std::uint8_t> unpacked(const TensorView& tensor);

/// The parameters of a tensor without errors; null if it is not quantised.
std::shared_ptr<const ir::Quantization> quantization_of(const TensorView& tensor);

}  // namespace clgpu::tfl
