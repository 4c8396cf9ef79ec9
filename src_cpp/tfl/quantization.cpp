#include "tfl/quantization.hpp"

#include <cmath>
#include <limits>

namespace clgpu::tfl {
namespace {

const TfLiteAffineQuantization* affine_of(const TensorView& tensor) {
  if (tensor.raw().quantization.type != 1) return nullptr;
  const auto* affine =
      static_cast<const TfLiteAffineQuantization*>(tensor.raw().quantization.params);
  return affine != nullptr && affine->scale != nullptr && affine->scale->size > 0 ? affine
                                                                                  : nullptr;
}

ir::Quantization read(const TensorView& tensor) {
  const auto* affine = affine_of(tensor);
  if (affine == nullptr) return {{tensor.scale()}, {tensor.zero_point()}, 0};
  ir::Quantization result;
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
std::pair<std::int32_t, std::int32_t> zero_points_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    default:
      return {0, 0};
  }
}

}  // namespace

std::optional<Refusal> check_quantization(const TensorView& tensor, const std::string& what) {
  if (!tensor.is_quantized()) return std::nullopt;
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
  const auto [low, high] = zero_points_of(tensor.dtype());
  for (const std::int32_t zero_point : q.zero_points) {
    if (zero_point >= low && zero_point <= high) continue;
    return Refusal{Why::kQuantization,
                   what,
                   {},
                   "the zero point " + std::to_string(zero_point),
                   {std::to_string(low) + " to " + std::to_string(high) + " of " +
                    type_name(tensor.tflite_type())}};
  }
  if (count == 1) return std::nullopt;
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

std::shared_ptr<const ir::Quantization> quantization_of(const TensorView& tensor) {
  if (!tensor.is_quantized()) return nullptr;
  return std::make_shared<const ir::Quantization>(read(tensor));
}

}  // namespace clgpu::tfl
