// Typed, checked reading of one TFLite node during partitioning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "base/dtype.hpp"
#include "base/error.hpp"

namespace clgpu::tfl {

/// DType of a TfLiteType; nullopt for types without arithmetic here (string, complex128, ...).
std::optional<DType> dtype_of(std::int32_t tflite_type);

/// Name of a TfLiteType, for messages.
const char* type_name(std::int32_t tflite_type);

/// Name of a builtin operator code ("CONV_2D"), "BUILTIN_<code>" if unknown.
std::string builtin_name(std::int32_t code);

class TensorView {
 public:
  TensorView() = default;
  /// `context`: of the tensor, for quantisation that other tensors describe; may be null.
  TensorView(const TfLiteTensor* tensor, int id, const TfLiteContext* context = nullptr)
      : tensor_(tensor), id_(id), context_(context) {}

  int id() const { return id_; }
  const TfLiteTensor& raw() const { return *tensor_; }
  std::int32_t tflite_type() const { return tensor_->type; }
  /// Element type; only valid for types that dtype_of knows (the importer checks before import()),
  /// and for int4 and int2, which are read as int8.
  DType dtype() const { return is_narrow() ? DType::kI8 : *dtype_of(tensor_->type); }
  /// Whether elements share a byte, from its lowest bits on: int4, int2. Only weights are read.
  bool is_narrow() const { return tensor_->type == kTfLiteInt4 || tensor_->type == kTfLiteInt2; }
  int rank() const { return tensor_->dims == nullptr ? 0 : tensor_->dims->size; }
  int dim(int axis) const { return tensor_->dims->data[axis]; }
  std::vector<int> dims() const;
  /// As ir::Shape counts them.
  std::int64_t elements() const;
  /// Constant of the model whose bytes are available.
  bool has_data() const;
  /// Whether the tensor has integer storage with a scale (int8, uint8, int16 ... with quantization
  /// parameters).
  bool is_quantized() const;
  /// The scales along its axis are those of blocks of neighbours, see blocks_of().
  bool is_blockwise() const { return tensor_->quantization.type == 2; }
  const TfLiteContext* context() const { return context_; }
  float scale() const { return tensor_->params.scale; }
  int zero_point() const { return tensor_->params.zero_point; }

  /// Values of a constant int32/int64/bool tensor; nullopt if it is not constant or has another
  /// type.
  std::optional<std::vector<std::int64_t>> ints() const;
  /// Values of a constant float32 or float16 tensor.
  std::optional<std::vector<float>> floats() const;

 private:
  const TfLiteTensor* tensor_ = nullptr;
  int id_ = -1;
  const TfLiteContext* context_ = nullptr;
};

class NodeView {
 public:
  NodeView(const TfLiteContext& context, const TfLiteNode& node,
           const TfLiteRegistration& registration, int index)
      : context_(context), node_(node), registration_(registration), index_(index) {}

  int index() const { return index_; }
  const TfLiteContext& context() const { return context_; }
  int builtin() const { return registration_.builtin_code; }
  int version() const { return registration_.version; }
  /// Name of a custom operation, null for a builtin operation.
  const char* custom_name() const {
    return registration_.builtin_code == kTfLiteBuiltinCustom ? registration_.custom_name : nullptr;
  }
  /// "CONV_2D" or the custom name.
  std::string op() const;

  int input_count() const { return node_.inputs->size; }
  int output_count() const { return node_.outputs->size; }
  /// False if there are fewer inputs, the file leaves this one out, or it is not a tensor of the
  /// model.
  bool has_input(int i) const { return i < input_count() && is_tensor(node_.inputs->data[i]); }
  bool has_output(int i) const { return i < output_count() && is_tensor(node_.outputs->data[i]); }
  /// Both throw Error if there is no such tensor: no earlier step has checked the model.
  TensorView input(int i) const {
    if (!has_input(i)) throw Error("it has no input " + std::to_string(i));
    return tensor(node_.inputs->data[i]);
  }
  TensorView output(int i) const {
    if (!has_output(i)) throw Error("it has no output " + std::to_string(i));
    return tensor(node_.outputs->data[i]);
  }
  int intermediate_count() const {
    return node_.intermediates == nullptr ? 0 : node_.intermediates->size;
  }
  /// A tensor that tells the scale of a value within the node; throws Error if there is none.
  TensorView intermediate(int i) const {
    const TfLiteIntArray* ids = node_.intermediates;
    if (ids == nullptr || i >= ids->size || !is_tensor(ids->data[i]))
      throw Error("it has no intermediate tensor " + std::to_string(i));
    return tensor(ids->data[i]);
  }
  bool is_tensor(int id) const {
    return id >= 0 && static_cast<std::size_t>(id) < context_.tensors_size;
  }
  TensorView tensor(int id) const { return {&context_.tensors[id], id, &context_}; }

  /// Builtin parameters; null if the operation has none. P is a struct of abi/tflite_abi.hpp.
  template <class P>
  const P* params() const {
    return static_cast<const P*>(node_.builtin_data);
  }
  const std::uint8_t* custom_data() const {
    return static_cast<const std::uint8_t*>(node_.custom_initial_data);
  }
  std::size_t custom_bytes() const {
    return static_cast<std::size_t>(node_.custom_initial_data_size);
  }

 private:
  const TfLiteContext& context_;
  const TfLiteNode& node_;
  const TfLiteRegistration& registration_;
  int index_;
};

}  // namespace clgpu::tfl
