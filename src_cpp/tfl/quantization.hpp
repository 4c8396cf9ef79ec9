// Quantisation parameters of a TFLite tensor, checked.
#pragma once

#include <memory>
#include <string>

#include "ir/tensor.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::tfl {

/// What is wrong with the parameters of a quantised tensor, as the end of a sentence that begins
/// with its name ("has a scale of 0 ..."); empty where nothing is.
std::string quantization_problem(const TensorView& tensor);

/// The parameters of a tensor without a problem; null where it is not quantised.
std::shared_ptr<const ir::Quantization> quantization_of(const TensorView& tensor);

}  // namespace clgpu::tfl
