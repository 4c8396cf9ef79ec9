// A value of the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "ir/shape.hpp"

namespace clgpu::ir {

/// Bytes of a constant: borrowed from the model (which outlives the delegate's kernels) or owned.
struct Constant {
  const void* data = nullptr;
  std::size_t bytes = 0;
  DType dtype = DType::kF32;  ///< type of the bytes; may differ from the tensor's storage
  std::shared_ptr<const std::vector<std::uint8_t>> owner;  ///< keeps `data` alive when owned

  /// Whether it is of floats or halves, and half storage holds each of them but for a rounding.
  bool fits_half() const;
};

struct Tensor {
  std::string name;
  int tflite_id = -1;           ///< index in TfLiteContext::tensors; -1 for our own
  DType dtype = DType::kF32;    ///< type the model gives it
  DType storage = DType::kF32;  ///< type it has in device memory
  int model_rank = 0;           ///< rank the model gives it: what the families have relied on
  Shape shape;
  std::shared_ptr<const Constant> constant;  ///< null unless its bytes are known at load time

  bool is_constant() const { return constant != nullptr; }
  std::int64_t storage_bytes() const {
    return shape.elements() * static_cast<std::int64_t>(size_of(storage));
  }
};

}  // namespace clgpu::ir
