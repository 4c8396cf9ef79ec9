// Helpers shared by the families.
#include "ops/shared/common.hpp"

#include <algorithm>
#include <locale>
#include <numeric>
#include <sstream>

namespace clgpu::ops {

std::optional<int> normalize_axis(std::int64_t axis, int rank) {
  const std::int64_t positive = axis < 0 ? axis + rank : axis;
  if (positive < 0 || positive >= rank) return std::nullopt;
  return static_cast<int>(positive);
}

ir::Shape broadcast(const ir::Shape& a, const ir::Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  // The runtimes' kernels, too, take more axes of equal shapes only.
  if (rank > kMaxRank && a != b) {
    throw ShapeError("shapes " + a.str() + " and " + b.str() + " differ; shapes of more than " +
                     std::to_string(kMaxRank) + " axes do not broadcast");
  }
  std::vector<int> dims(uz(rank));
  for (int i = 0; i < rank; ++i) {
    const int x = a.back(i), y = b.back(i);
    if (x != y && x != 1 && y != 1) {
      throw ShapeError("shapes " + a.str() + " and " + b.str() + " do not broadcast");
    }
    dims[uz(rank - 1 - i)] = x == 1 ? y : x;
  }
  return ir::Shape(dims);
}

std::vector<int> broadcast_strides(const ir::Shape& from, const ir::Shape& to) {
  const std::vector<int> own = from.strides();
  std::vector<int> strides(uz(to.rank()), 0);
  for (int i = 0; i < from.rank(); ++i) {
    const int from_axis = from.rank() - 1 - i;
    if (from[from_axis] != 1) strides[uz(to.rank() - 1 - i)] = own[uz(from_axis)];
  }
  return strides;
}

OrRefusal<ir::Epilogue> fused_activation(std::int32_t code) {
  // TfLiteFusedActivation 0..6 are the first values of ir::Activation.
  if (code < 0 || code > 6)
    return Refusal{Why::kActivation, "the fused activation", {}, std::to_string(code), {"0 to 6"}};
  return ir::Epilogue{static_cast<ir::Activation>(code), 0.0F};
}

void set_epilogue(kernel::Launch& launch, const ir::Epilogue& epilogue) {
  std::ostringstream alpha;
  alpha.imbue(std::locale::classic());  // for locales that write 0,5
  alpha.precision(9);
  alpha << std::scientific << epilogue.alpha << 'f';
  launch.macro("ACT", static_cast<int>(epilogue.activation)).macro("ACT_ALPHA", alpha.str());
}

ResultLayout result_layout(const NodeContext& node) {
  const ir::Tensor& dst = node.output(0);
  if (!dst.placement) return {};
  const std::int64_t channels = dst.shape.back(0);
  const bool gaps = dst.placement->pitch != channels;
  return {true, gaps ? channels : dst.shape.elements(), dst.placement->pitch, dst.placement->first};
}

std::int64_t ResultLayout::common_divisor(std::int64_t divisor) const {
  return sliced ? std::gcd(std::gcd(divisor, channels), std::gcd(pitch, first)) : divisor;
}

kernel::Launch& push_result(kernel::Launch& launch, const ResultLayout& layout, int unit) {
  return push_layout(launch.dst(0), layout, unit);
}

kernel::Launch& push_layout(kernel::Launch& launch, const ResultLayout& layout, int unit) {
  launch.macro("SLICED", layout.sliced ? 1 : 0);
  if (!layout.sliced) return launch;
  return launch.i32(layout.channels / unit).i32(layout.pitch / unit).i32(layout.first / unit);
}

void set_no_epilogue(kernel::Launch& launch, DType sum) {
  launch.macro("BIAS", 0).type("BIAS_T", DType::kF32);
  launch.macro("RESIDUAL", 0).type("RESIDUAL_T", DType::kF32);
  launch.macro("RESIDUAL_AFTER", 0).macro("SLICED", 0);
  launch.macro("SCALED", 0).macro("TABLE", 0);
  launch.macro("QUANTIZED", sum == DType::kF32 ? 0 : 3).type("SUM_T", sum);
}

bool has_int8_weights(const ir::Graph& graph, const ir::Node& node) {
  const int slot = node.kind->weights.slot;
  if (slot < 0 || node.inputs.size() <= uz(slot) || node.inputs[uz(slot)] < 0) return false;
  const ir::Tensor& weights = graph.tensor(node.inputs[uz(slot)]);
  return weights.is_quantized() && weights.dtype == DType::kI8 &&
         graph.tensor(node.outputs[0]).dtype == DType::kF32;
}

bool is_grouped(const ir::Graph& graph, const ir::Node& node) {
  const ir::Weights& weights = node.kind->weights;
  if (weights.in_axis < 0) return false;
  const ir::Shape& image = graph.tensor(node.inputs[0]).shape;
  return image.back(0) != graph.tensor(node.inputs[uz(weights.slot)]).shape[weights.in_axis];
}

kernel::Launch& set_weights_type(kernel::Launch& launch, const char* macro, const NodeContext& node,
                                 DType storage) {
  return has_int8_weights(node) && !is_hybrid(node) ? launch.macro(macro, "weight8")
                                                    : launch.type(macro, storage);
}

void set_result_types(kernel::Launch& launch, const NodeContext& node, int bias,
                      Requantization requantization) {
  const auto set = [&](const char* has, const char* type, int input) {
    const bool exists = input >= 0 && node.has_input(input);
    launch.macro(has, exists ? 1 : 0);
    launch.type(type, exists ? node.input(input).storage : DType::kF32);
  };
  launch.type("DST_T", node.output(0).storage);
  set("BIAS", "BIAS_T", bias);
  set("RESIDUAL", "RESIDUAL_T", node.residual());
  const ir::Tensor& dst = node.output(0);
  if (is_hybrid(node)) requantization = Requantization::kHybrid;
  const bool hybrid = requantization == Requantization::kHybrid;
  const bool quantized = dst.is_quantized() || hybrid || requantization == Requantization::kSums;
  launch.macro("QUANTIZED", quantized ? static_cast<int>(requantization) : 0);
  launch.macro("SCALED", has_int8_weights(node) && !hybrid ? 1 : 0);
  launch.type("SUM_T", !quantized                 ? DType::kF32
                       : dst.dtype == DType::kI16 ? DType::kI64
                                                  : DType::kI32);
  const auto& tail = node.node().tail;
  launch.macro("TABLE", tail != nullptr && !tail->table.empty() ? 1 : 0);
  const bool after = node.residual() >= 0 && node.epilogue().residual_after;
  launch.macro("RESIDUAL_AFTER", after ? 1 : 0);
  if (node.slopes() >= 0) launch.type("SLOPES_T", node.input(node.slopes()).storage);
  set_epilogue(launch, quantized && !hybrid ? ir::Epilogue{} : node.epilogue());
}

kernel::Launch& push_result(kernel::Launch& launch, const NodeContext& node, int bias) {
  if (has_int8_weights(node)) launch.src(kWeightScales);
  if (node.has_input(bias)) launch.src(bias);
  if (node.residual() >= 0) launch.src(node.residual());
  if (node.slopes() >= 0) launch.src(node.slopes());
  return push_result(launch, result_layout(node));
}

void check_residual_shape(const NodeContext& node, const ir::Shape& result) {
  if (node.residual() < 0) return;
  const auto& placement = node.output(0).placement;
  const ir::Shape& residual = node.input(node.residual()).shape;
  if (residual == (placement ? node.graph().tensor(placement->whole).shape : result)) return;
  throw ShapeError("a tensor of shape " + residual.str() + " is to be added to the result " +
                   result.str() + "; both were of one shape when the model was loaded");
}

std::optional<Refusal> check_type(const tfl::TensorView& tensor, const std::string& what,
                                  std::initializer_list<DType> allowed) {
  const auto dtype = tfl::dtype_of(tensor.tflite_type());
  if (dtype && std::find(allowed.begin(), allowed.end(), *dtype) != allowed.end())
    return std::nullopt;
  std::vector<std::string> names;
  for (const DType t : allowed) names.emplace_back(name_of(t));
  return Refusal{Why::kType, what, {}, tfl::type_name(tensor.tflite_type()), std::move(names)};
}

std::optional<Refusal> check_rank(const tfl::TensorView& tensor, const std::string& what, int least,
                                  int most) {
  const int rank = tensor.rank();
  if (rank >= least && rank <= most) return std::nullopt;
  const std::string to = least == most ? "" : " to " + std::to_string(most);
  return Refusal{Why::kRank, what, {}, std::to_string(rank), {std::to_string(least) + to}};
}

OrRefusal<int> checked_axis(std::int64_t axis, int rank) {
  if (const auto positive = normalize_axis(axis, rank)) return *positive;
  return wrong_value("the axis", axis,
                     rank == 0 ? "none, as a scalar has no axes"
                               : std::to_string(-rank) + " to " + std::to_string(rank - 1));
}

Refusal wrong_value(const std::string& what, std::int64_t value, const std::string& supported) {
  return {Why::kParameter, what, {}, std::to_string(value), {supported}};
}

Window window(int padding, int in, int filter, int stride, int dilation) {
  const int reach = (filter - 1) * dilation + 1;
  if (padding == 1) {
    const int out = (in + stride - 1) / stride;
    return {out, std::max(0, (out - 1) * stride + reach - in) / 2};
  }
  return {(in - reach + stride) / stride, 0};
}

ir::Shapes infer_same_as_input(const NodeContext& node) { return {node.input(0).shape}; }

}  // namespace clgpu::ops
