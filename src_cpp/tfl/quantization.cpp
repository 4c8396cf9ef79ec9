#include "tfl/quantization.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace clgpu::tfl {
namespace {

constexpr int kBlockUnit = 8;  // int4 elements that kernels read at once

const TfLiteAffineQuantization* affine_of(const TensorView& tensor) {
  if (tensor.raw().quantization.type != 1) return nullptr;
  const auto* affine =
      static_cast<const TfLiteAffineQuantization*>(tensor.raw().quantization.params);
  return affine != nullptr && affine->scale != nullptr && affine->scale->size > 0 ? affine
                                                                                  : nullptr;
}

/// Scales of blocks, with the tensor that holds them; null if it is not what kernels can read.
const TfLiteTensor* block_scales(const TensorView& tensor) {
  const auto* blocks =
      static_cast<const TfLiteBlockwiseQuantization*>(tensor.raw().quantization.params);
  const TfLiteContext* context = tensor.context();
  if (blocks == nullptr || context == nullptr || tensor.rank() != 2) return nullptr;
  const int size = blocks->blocksize;
  // Files without zero points say 0 or -1, and the runtimes' kernels read none.
  const bool fits = size > 0 && size % kBlockUnit == 0 && tensor.dim(1) % size == 0 &&
                    blocks->quantized_dimension == 0 && blocks->zero_point <= 0;
  if (!fits || blocks->scale < 0 ||
      static_cast<std::size_t>(blocks->scale) >= context->tensors_size)
    return nullptr;
  const TfLiteTensor* scales = &context->tensors[blocks->scale];
  const TensorView view(scales, blocks->scale);
  const std::int64_t count = std::int64_t{tensor.dim(0)} * (tensor.dim(1) / size);
  const bool is_float = scales->type == kTfLiteFloat16 || scales->type == kTfLiteFloat32;
  return is_float && view.has_data() && view.elements() == count ? scales : nullptr;
}

ir::Quantization read(const TensorView& tensor) {
  if (tensor.is_blockwise()) {
    ir::Quantization result;
    const TfLiteTensor* scales = block_scales(tensor);
    if (scales == nullptr) return {{0.0F}, {0}, 0};
    result.scales = *TensorView(scales, -1).floats();
    result.zero_points.assign(result.scales.size(), 0);
    result.block = static_cast<const TfLiteBlockwiseQuantization*>(tensor.raw().quantization.params)
                       ->blocksize;
    result.narrow = tensor.is_narrow();
    return result;
  }
  const auto* affine = affine_of(tensor);
  ir::Quantization result;
  result.narrow = tensor.is_narrow();
  if (affine == nullptr) {
    result.scales = {tensor.scale()};
    result.zero_points = {tensor.zero_point()};
    return result;
  }
  result.axis = affine->quantized_dimension;
  const auto* scales = affine->scale;
  const auto* zero_points = affine->zero_point;
  result.scales.assign(scales->data, scales->data + scales->size);
  if (zero_points != nullptr)
    result.zero_points.assign(zero_points->data, zero_points->data + zero_points->size);
  // Runtimes may shorten a list of equal zero points.
  if (result.zero_points.size() == 1)
    result.zero_points.resize(result.scales.size(), result.zero_points.front());
  return result;
}

/// Smallest and largest zero point of a type; bias tensors have only 0.
std::pair<std::int32_t, std::int32_t> zero_points_of(DType dtype, bool int16_zero_points) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    case DType::kI16:
      if (int16_zero_points) return {-32768, 32767};
      return {0, 0};
    default:
      return {0, 0};
  }
}

}  // namespace

std::optional<Refusal> check_quantization(const TensorView& tensor, const std::string& what,
                                          bool int16_zero_points) {
  if (!tensor.is_quantized()) return std::nullopt;
  if (tensor.is_blockwise() &&
      (tensor.tflite_type() != kTfLiteInt4 || block_scales(tensor) == nullptr)) {
    return Refusal{
        Why::kQuantization,
        what,
        "has other blocks than kernels read",
        "scales of blocks",
        {"int4 matrices, with constant scales for blocks of 8, 16, 24, ... elements of a "
         "row and without zero points"}};
  }
  const ir::Quantization q = read(tensor);
  const std::size_t count = q.scales.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (q.scales[i] > 0.0F && std::isfinite(q.scales[i])) continue;
    // Stock kernels abort on such scales of results. Converters write zeros beside constants that
    // are 0, and stock does not look at the scales of wide integers.
    const bool is_result = count == 1 && tensor.raw().allocation_type != kTfLiteMmapRo;
    return Refusal{is_result && size_of(tensor.dtype()) <= 2 ? Why::kAborts : Why::kQuantization,
                   what,
                   {},
                   "the scale " + std::to_string(q.scales[i]) +
                       (count > 1 ? " at index " + std::to_string(i) : ""),
                   {"positive and finite"}};
  }
  if (q.zero_points.size() != count) {
    return Refusal{Why::kQuantization,
                   what,
                   {},
                   std::to_string(q.zero_points.size()) + " zero points",
                   {"one for each of " + std::to_string(count) + " scales"}};
  }
  const auto [low, high] = zero_points_of(tensor.dtype(), int16_zero_points);
  for (const std::int32_t zero_point : q.zero_points) {
    if (zero_point >= low && zero_point <= high) continue;
    return Refusal{Why::kQuantization,
                   what,
                   {},
                   "the zero point " + std::to_string(zero_point),
                   {std::to_string(low) + " to " + std::to_string(high) + " of " +
                    type_name(tensor.tflite_type())}};
  }
  if (count == 1 || q.block > 0) return std::nullopt;
  if (q.axis < 0 || q.axis >= tensor.rank()) {
    return Refusal{Why::kQuantization,
                   what,
                   {},
                   "scales along axis " + std::to_string(q.axis),
                   {"0 to " + std::to_string(tensor.rank() - 1)}};
  }
  if (static_cast<int>(count) != tensor.dim(q.axis)) {
    return Refusal{Why::kQuantization,
                   what,
                   {},
                   std::to_string(count) + " scales along axis " + std::to_string(q.axis),
                   {"one, or " + std::to_string(tensor.dim(q.axis)) + ", the size of that axis"}};
  }
  return std::nullopt;
}

int bits_of(const TensorView& tensor) {
  if (!tensor.is_narrow()) return 8;
  return tensor.tflite_type() == kTfLiteInt2 ? 2 : 4;
}

std::vector<std::uint8_t> unpacked(const TensorView& tensor) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(tensor.elements()), 0);
  const int bits = bits_of(tensor);
  const std::size_t stored = tensor.raw().bytes * static_cast<std::size_t>(8 / bits);
  ir::widen(tensor.raw().data, bits, 0, std::min(result.size(), stored), result.data());
  return result;
}

std::shared_ptr<const ir::Quantization> quantization_of(const TensorView& tensor) {
  if (!tensor.is_quantized()) return nullptr;
  return std::make_shared<const ir::Quantization>(read(tensor));
}

}  // namespace clgpu::tfl
