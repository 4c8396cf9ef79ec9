// Small helpers that families share: checks, shape arithmetic, launch sizes.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "ir/fields.hpp"
#include "ops/family.hpp"

namespace clgpu::ops {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

/// Axis in [0, rank) from a possibly negative one; nullopt when out of range.
std::optional<int> normalize_axis(std::int64_t axis, int rank);

/// Numpy broadcasting of two shapes; throws ShapeError naming both.
ir::Shape broadcast(const ir::Shape& a, const ir::Shape& b);

/// Strides (elements) with which a tensor of shape `from` is read when broadcast to `to`: 0 along
/// broadcast axes, aligned to the right, one entry per axis of `to`.
std::vector<int> broadcast_strides(const ir::Shape& from, const ir::Shape& to);

/// Epilogue of a TFLite fused activation code (TfLiteFusedActivation); refuses unknown codes.
OrRefusal<ir::Epilogue> fused_activation(std::int32_t code);

/// Sets the macros ACT and ACT_ALPHA of kernels/common/activation.cl.
void set_epilogue(kernel::Launch& launch, const ir::Epilogue& epilogue);

/// The position of output 0 of a node, see kernels/common/result.cl. Sizes in elements.
struct ResultLayout {
  bool sliced = false;
  std::int64_t channels = 0;  ///< adjacent elements: all, if there are no gaps
  std::int64_t pitch = 0, first = 0;

  /// Every pixel begins at a multiple of n elements, if it does so in a separate tensor.
  bool aligned(std::int64_t n) const { return !sliced || (pitch % n == 0 && first % n == 0); }
  /// The greatest divisor of `divisor` that also divides the positions at which the pixels begin.
  std::int64_t common_divisor(std::int64_t divisor) const;
};
ResultLayout result_layout(const NodeContext& node);

/// Sets the macro of kernels/common/result.cl and appends its parameters, in units of `unit`
/// elements.
kernel::Launch& push_result(kernel::Launch& launch, const ResultLayout& layout, int unit = 1);

/// The same without dst, which is the previous argument.
kernel::Launch& push_layout(kernel::Launch& launch, const ResultLayout& layout, int unit = 1);

/// Input slot of the scales of int8 weights that floats are multiplied by: [16 or more] floats, one
/// for each output channel. passes::dynamic_range adds it.
constexpr int kWeightScales = 5;

/// Input slot of the quantisation of the input's rows in hybrid arithmetic: [rows, 2], the bits of
/// a scale and a zero point.
constexpr int kRowFactors = 6;

/// The input is int8, the result float: hybrid arithmetic.
inline bool is_hybrid(const NodeContext& node) {
  return node.has_input(kRowFactors) && node.input(kRowFactors).dtype == DType::kI32;
}

/// A node of floats whose weights are int8.
bool has_int8_weights(const ir::Graph& graph, const ir::Node& node);
inline bool has_int8_weights(const NodeContext& node) {
  return has_int8_weights(node.graph(), node.node());
}

/// A convolution in groups: each output channel depends on some of the image's channels.
bool is_grouped(const ir::Graph& graph, const ir::Node& node);

/// The macro for the type of the weights, or of a copy in another order: int8 weights of floats are
/// read as floats.
kernel::Launch& set_weights_type(kernel::Launch& launch, const char* macro, const NodeContext& node,
                                 DType storage);

/// The conversion of integer sums to results, see kernels/common/requantize.cl; the value of its
/// macro QUANTIZED.
enum class Requantization : int {
  kShifts = 1,  ///< by an integer multiplier and a shift
  kReal = 2,    ///< by a product of doubles: FULLY_CONNECTED's reference kernel
  kSums = 3,    ///< they are the results, of int32
  kHybrid = 4,  ///< to floats, by a scale of the row and one of the channel
};

/// Sets the macros of kernels/common/epilogue.cl but SLICED, and DST_T. `bias`: input index of the
/// bias, which may be absent; `requantization`: of results that are quantised.
void set_result_types(kernel::Launch& launch, const NodeContext& node, int bias,
                      Requantization requantization = Requantization::kShifts);

/// Appends the buffers bias, residual and slopes, if they exist, and dst as above.
kernel::Launch& push_result(kernel::Launch& launch, const NodeContext& node, int bias);

/// Sets the macros of kernels/common/epilogue.cl for sums that are only stored.
void set_no_epilogue(kernel::Launch& launch, DType sum = DType::kF32);

/// Throws ShapeError unless the residual, if there is one, has the shape of the result, or of the
/// whole that contains the result.
void check_residual_shape(const NodeContext& node, const ir::Shape& result);

/// "input 0 is int8; supported: float32, int32" unless the type of `tensor` is one of `allowed`.
std::optional<Refusal> check_type(const tfl::TensorView& tensor, const std::string& what,
                                  std::initializer_list<DType> allowed);

/// "input 0 has rank 3; supported: 4" unless the rank of `tensor` is one of `least` to `most`.
std::optional<Refusal> check_rank(const tfl::TensorView& tensor, const std::string& what, int least,
                                  int most = kMaxRank);

/// normalize_axis, or "the axis is 5; supported: -2 to 1".
OrRefusal<int> checked_axis(std::int64_t axis, int rank);

/// "a padding is -1; supported: 0 and more".
Refusal wrong_value(const std::string& what, std::int64_t value, const std::string& supported);

/// The supported values of TfLitePadding.
constexpr const char* kPaddings = "1 (SAME), 2 (VALID)";

/// Work-group size of kernels that give one work-item to one element.
constexpr std::size_t kElementwiseGroup = 64;

/// A spatial window (convolution or pooling) along one axis.
struct Window {
  int out = 0;     ///< output size
  int before = 0;  ///< zero elements in front of the input
  CLGPU_FIELDS(out, before)
};

/// TFLite's rule for SAME (1) and VALID (2) padding. `filter`, `stride`, `dilation` in elements.
Window window(int padding, int in, int filter, int stride, int dilation);

/// Shape rule of operations whose output 0 has the shape of input 0.
ir::Shapes infer_same_as_input(const NodeContext& node);

/// `make_attrs<T>(fields...)` for aggregate attribute structs deriving from ir::Attrs.
template <class T>
ir::AttrsPtr share(T attrs) {
  return std::make_shared<const T>(std::move(attrs));
}

}  // namespace clgpu::ops

/// Inside an import function: leave when the type of a tensor is not one of the allowed ones.
#define CLGPU_REFUSE_TYPE(tensor, what, ...)                                                   \
  do {                                                                                         \
    if (auto refusal = ::clgpu::ops::check_type(tensor, what, {__VA_ARGS__})) return *refusal; \
  } while (0)

/// The same for its rank.
#define CLGPU_REFUSE_RANK(tensor, ...)                                                 \
  do {                                                                                 \
    if (auto refusal = ::clgpu::ops::check_rank(tensor, __VA_ARGS__)) return *refusal; \
  } while (0)
