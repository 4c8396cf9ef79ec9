// A value of the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  std::shared_ptr<const std::vector<std::uint8_t>> owner;  ///< keeps `data` alive if owned
  int bits = 8;  ///< less: elements of int8, several in a byte, the first one in the lowest bits

  /// Whether it consists of floats that half storage can hold, except for rounding.
  bool fits_half() const;
  /// A copy with a byte for each element, if `bits` is less than 8.
  Constant widened() const;
};

/// Elements of `bits` bits as int8: `count` of them from `first` on.
void widen(const void* packed, int bits, std::size_t first, std::size_t count, std::uint8_t* to);

/// The real values of a quantised tensor: real = scale * (stored - zero_point).
struct Quantization {
  std::vector<float> scales;              ///< one, or one for each index along `axis`
  std::vector<std::int32_t> zero_points;  ///< as many as scales
  int axis = 0;                           ///< only with several scales
  int block = 0;        ///< if positive: of a matrix; this many elements of a row share a scale
  bool narrow = false;  ///< the model stores them in 4 bits or less: -8 to 7

  bool per_axis() const { return scales.size() > 1; }
};

/// The place of a tensor that is a part of another one: element (p, c), p being the flat index over
/// all axes but the last and c the index on the last, is element `first + p * pitch + c` of
/// `whole`.
struct Placement {
  int whole = -1;  ///< tensor index; has no placement itself
  std::int64_t pitch = 0, first = 0;
};

struct Tensor {
  std::string name;
  int tflite_id = -1;  ///< index in TfLiteContext::tensors; -1 for our own
  /// Of an input or output of the graph: the value that the partition's state of this number has
  /// before or after the inference (delegate/building/states.hpp). -1: it is no state's.
  int state = -1;
  /// Of an input or output of the graph: the tensor of this number stays on the device between
  /// inferences (runtime/run/carried.hpp). The output of that number is its next value. -1: it is
  /// the runtime's.
  int carried = -1;
  /// Of an output of the graph: it holds the largest elements of the carried tensor of this number,
  /// or their indices (delegate/building/largest.hpp), and is no tensor of the runtime's. -1: of
  /// none.
  int largest_of = -1;
  /// Of an input of the graph: the application sets it, no node of the model computes it. Noted
  /// where the option 'reuse' is on.
  bool is_fed = false;
  /// Its memory, and that of its views and of the whole that it is a part of, holds it from one
  /// inference to the next: nodes with predicates (passes/reuse_rows.hpp) renew what has changed.
  bool is_kept = false;
  DType dtype = DType::kF32;    ///< type the model gives it
  DType storage = DType::kF32;  ///< type it has in device memory
  int model_rank = 0;           ///< rank the model gives it: what the families have relied on
  Shape shape;
  /// Null if not quantised. Of floats that are stored as integers: how they are stored.
  std::shared_ptr<const Quantization> quantization;
  std::shared_ptr<const Constant> constant;  ///< null unless its bytes are known at load time
  /// Set if the tensor has no memory of its own. Its writer writes into the whole, and its only
  /// reader is the CONCATENATION that makes the whole.
  std::optional<Placement> placement;

  bool is_quantized() const { return quantization != nullptr; }
  /// For a tensor with one scale.
  float scale() const { return quantization->scales.front(); }
  std::int32_t zero_point() const { return quantization->zero_points.front(); }
  /// Memory holds integers of a float tensor, or floats of a tensor of integers: its writer and its
  /// readers convert them (passes::fuse_borders).
  bool is_converted() const { return is_float(dtype) != is_float(storage); }
  bool is_constant() const { return constant != nullptr; }
  std::int64_t storage_bytes() const {
    return shape.elements() * static_cast<std::int64_t>(size_of(storage));
  }
};

}  // namespace clgpu::ir
