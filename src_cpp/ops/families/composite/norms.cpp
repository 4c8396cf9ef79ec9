// Normalisations: of rows by their lengths, and of groups of channels by mean and variance.
#include <algorithm>
#include <cmath>

#include "ops/families/composite/composite.hpp"

namespace clgpu::ops::composite {
namespace {

constexpr int kX = 0, kWeight = 1, kBias = 2;  // inputs

/// x of at least `least` axes, and `parameters` further tensors, one number per channel each.
std::optional<Refusal> check_operands(const tfl::NodeView& node, int least, int parameters) {
  if (node.input_count() > 1 + parameters) {
    return Refusal{Why::kOperands, "",
                   "it has " + std::to_string(node.input_count()) +
                       " inputs; the normalisation takes at most " +
                       std::to_string(1 + parameters)};
  }
  constexpr const char* kNames[] = {"x", "scale", "bias"};
  for (int i = 0; i < node.input_count(); ++i) {
    if (auto refusal = check_type(node.input(i), kNames[i], {DType::kF32})) return refusal;
  }
  return check_rank(node.input(kX), kNames[kX], least);
}

/// A number of the file as an integer; numbers beyond 32 bits become the nearest one within.
std::int64_t integer_of(double number) {
  if (std::isnan(number)) return 0;
  return static_cast<std::int64_t>(std::clamp(number, -2147483648.0, 2147483647.0));
}

std::optional<Refusal> check_last_axis(const Numbers& numbers, const char* name, int rank) {
  const auto axis = numbers.find(name);
  if (axis == numbers.end() || axis->second == -1.0 || axis->second == rank - 1)
    return std::nullopt;
  return wrong_value(std::string("the attribute ") + name, integer_of(axis->second),
                     "-1, the last axis");
}

OrRefusal<float> epsilon_of(const Numbers& numbers) {
  const auto found = numbers.find("epsilon");
  CLGPU_REFUSE_IF(found == numbers.end(), Why::kParameter, "the attribute epsilon", "is missing");
  return static_cast<float>(found->second);
}

}  // namespace

OrRefusal<CompositeAttrs> import_row_norm(const tfl::NodeView& node, const Numbers& numbers,
                                          Kind kind) {
  if (auto refusal = check_operands(node, 1, kind == kRmsNorm ? 1 : 0)) return *refusal;
  if (auto refusal = check_last_axis(numbers, "axis", node.input(kX).rank())) return *refusal;
  const auto epsilon = epsilon_of(numbers);
  if (!epsilon) return epsilon.refusal();
  CompositeAttrs attrs;
  attrs.kind = kind;
  attrs.epsilon = *epsilon;
  return attrs;
}

OrRefusal<CompositeAttrs> import_group_norm(const tfl::NodeView& node, const Numbers& numbers) {
  if (auto refusal = check_operands(node, 2, 2)) return *refusal;
  const tfl::TensorView x = node.input(kX);
  if (auto refusal = check_last_axis(numbers, "channel_axis", x.rank())) return *refusal;
  const auto epsilon = epsilon_of(numbers);
  if (!epsilon) return epsilon.refusal();
  const auto found = numbers.find("num_groups");
  const auto groups = found == numbers.end() ? 0 : integer_of(found->second);
  const int channels = x.dim(x.rank() - 1);
  if (groups < 1 || groups > channels || channels % groups != 0) {
    return wrong_value("the attribute num_groups", groups,
                       "divisors of the " + std::to_string(channels) + " channels");
  }
  CompositeAttrs attrs;
  attrs.kind = kGroupNorm;
  attrs.epsilon = *epsilon;
  attrs.groups = static_cast<int>(groups);
  return attrs;
}

ir::Shape norm_shape(const NodeContext& node) {
  const ir::Shape& x = node.input(kX).shape;
  for (const int input : {kWeight, kBias}) {
    if (!node.has_input(input)) continue;
    const ir::Shape& factors = node.input(input).shape;
    // Others would broadcast along another axis.
    if (factors.elements() == x.back(0) && factors.rank() > 0 && factors.back(0) == x.back(0))
      continue;
    throw ShapeError("x " + x.str() + " does not fit factors of " + factors.str());
  }
  return x;
}

}  // namespace clgpu::ops::composite
