#include "tfl/node_view.hpp"

#include <cstring>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "base/utf8.hpp"
#include "ir/shape.hpp"

namespace clgpu::tfl {

std::optional<DType> dtype_of(std::int32_t tflite_type) {
  switch (tflite_type) {
    case kTfLiteFloat32:
      return DType::kF32;
    case kTfLiteFloat16:
      return DType::kF16;
    case kTfLiteInt64:
      return DType::kI64;
    case kTfLiteInt32:
      return DType::kI32;
    case kTfLiteInt16:
      return DType::kI16;
    case kTfLiteInt8:
      return DType::kI8;
    case kTfLiteUInt8:
      return DType::kU8;
    case kTfLiteBool:
      return DType::kBool;
    case kTfLiteComplex64:
      return DType::kC64;
    case kTfLiteBFloat16:
      return DType::kBF16;
    case kTfLiteUInt16:
      return DType::kU16;
    case kTfLiteUInt32:
      return DType::kU32;
    default:
      return std::nullopt;
  }
}

const char* type_name(std::int32_t tflite_type) {
  constexpr const char* kNames[] = {
      "no type",  "float32",   "int32",  "uint8",   "int64",   "string",     "bool",
      "int16",    "complex64", "int8",   "float16", "float64", "complex128", "uint64",
      "resource", "variant",   "uint32", "uint16",  "int4",    "bfloat16",   "int2"};
  constexpr auto kCount = static_cast<std::int32_t>(sizeof kNames / sizeof *kNames);
  return tflite_type >= 0 && tflite_type < kCount ? kNames[tflite_type] : "an unknown type";
}

std::vector<int> TensorView::dims() const {
  std::vector<int> dims;
  for (int i = 0; i < rank(); ++i) dims.push_back(dim(i));
  return dims;
}

std::int64_t TensorView::elements() const { return ir::Shape(dims()).elements(); }

bool TensorView::has_data() const {
  return tensor_->allocation_type == kTfLiteMmapRo && tensor_->data != nullptr;
}

bool TensorView::is_quantized() const {
  const std::int32_t type = tensor_->type;
  const bool small_int = type == kTfLiteInt8 || type == kTfLiteUInt8 || type == kTfLiteInt16 ||
                         type == kTfLiteInt4 || type == kTfLiteInt2;
  const bool has_scale = tensor_->quantization.type != 0 || tensor_->params.scale != 0.0F;
  return (small_int || type == kTfLiteInt32 || type == kTfLiteInt64) && has_scale;
}

std::optional<std::vector<std::int64_t>> TensorView::ints() const {
  if (!has_data()) return std::nullopt;
  std::vector<std::int64_t> values;
  const auto n = static_cast<std::size_t>(elements());
  const auto read = [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<const T*>(tensor_->data)[i]);
  };
  switch (tensor_->type) {
    case kTfLiteInt64:
      read(std::int64_t{});
      break;
    case kTfLiteInt32:
      read(std::int32_t{});
      break;
    case kTfLiteUInt32:
      read(std::uint32_t{});
      break;
    case kTfLiteInt16:
      read(std::int16_t{});
      break;
    case kTfLiteUInt16:
      read(std::uint16_t{});
      break;
    case kTfLiteInt8:
      read(std::int8_t{});
      break;
    case kTfLiteUInt8:
    case kTfLiteBool:
      read(std::uint8_t{});
      break;
    default:
      return std::nullopt;
  }
  return values;
}

std::optional<std::vector<float>> TensorView::floats() const {
  if (!has_data()) return std::nullopt;
  std::vector<float> values(static_cast<std::size_t>(elements()));
  if (tensor_->type == kTfLiteFloat32) {
    std::memcpy(values.data(), tensor_->data, values.size() * sizeof(float));
  } else if (tensor_->type == kTfLiteFloat16) {
    const auto* halves = static_cast<const std::uint16_t*>(tensor_->data);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = half_to_float(halves[i]);
  } else if (tensor_->type == kTfLiteBFloat16) {
    const auto* bfloats = static_cast<const std::uint16_t*>(tensor_->data);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = bfloat_to_float(bfloats[i]);
  } else {
    return std::nullopt;
  }
  return values;
}

std::string NodeView::op() const {
  if (const char* name = custom_name()) return printable(name);
  return builtin_name(builtin());
}

std::string builtin_name(std::int32_t code) {
  // The operator codes of the schema, in order.
  static constexpr const char* kNames[] = {
#include "tfl/builtin_names.def"
  };
  constexpr auto kCount = static_cast<std::int32_t>(sizeof kNames / sizeof *kNames);
  return code >= 0 && code < kCount ? kNames[code] : "BUILTIN_" + std::to_string(code);
}

}  // namespace clgpu::tfl
