// Tells whether the graph of a composite computes what our kernels compute.
#include <algorithm>
#include <cmath>

#include "ops/families/composite/composite.hpp"

namespace clgpu::ops::composite {
namespace {

using tfl::Decomposition;
using tfl::Step;

// Builtin operations.
enum : int {
  kAdd = 0,
  kMul = 18,
  kReshape = 22,
  kSoftmax = 25,
  kTranspose = 39,
  kMean = 40,
  kSub = 41,
  kDiv = 42,
  kSqueeze = 43,
  kExpandDims = 70,
  kSum = 74,
  kRsqrt = 76,
  kSquare = 92,
  kSquaredDifference = 99,
  kBatchMatmul = 126,
  kBroadcastTo = 130,
};

/// What a step means for the result. Steps that only move elements have no role.
enum class Role {
  kProduct,  ///< of matrices
  kFactor,   ///< times a number
  kShift,    ///< plus a number
  kAdd,
  kMul,
  kSub,
  kSquare,
  kSum,
  kMean,
  kRsqrt,
  kSoftmax,
  kOther,
};

/// Numbers of the file have been rounded to float, some of them before they were multiplied.
bool close(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

/// The steps that compute, in order.
class Chain {
 public:
  explicit Chain(const Decomposition& graph) : graph_(graph) {
    for (const Step& step : graph.steps) {
      if (!moves(step.builtin)) add(step);
    }
  }

  /// Whether the steps have these roles, in this order.
  bool is(const std::vector<Role>& roles) const { return roles_ == roles; }
  const std::vector<Role>& roles() const { return roles_; }
  std::int64_t count(Role role) const { return std::count(roles_.begin(), roles_.end(), role); }
  /// The product of all factors.
  double factor() const { return factor_; }
  const std::vector<double>& shifts() const { return shifts_; }
  /// Each sum or mean is over `terms` elements of its input, none of which another one reads.
  bool sums_are_over(std::int64_t terms) const {
    return std::all_of(sums_.begin(), sums_.end(), [&](const Step* step) {
      return ir::Shape(graph_.shapes.at(step->inputs[0])).elements() ==
             terms * ir::Shape(graph_.shapes.at(step->outputs[0])).elements();
    });
  }
  /// ... over the last axis, and perhaps others.
  bool sums_include_last_axis() const {
    return std::all_of(sums_.begin(), sums_.end(), [&](const Step* step) {
      const auto axes = graph_.ints.find(step->inputs[1]);
      const auto rank = static_cast<std::int64_t>(graph_.shapes.at(step->inputs[0]).size());
      return axes != graph_.ints.end() &&
             std::any_of(axes->second.begin(), axes->second.end(),
                         [&](std::int64_t axis) { return axis == -1 || axis == rank - 1; });
    });
  }
  /// ... over the last axis alone.
  bool sums_are_over_last_axis() const {
    return std::all_of(sums_.begin(), sums_.end(), [&](const Step* step) {
      const auto axes = graph_.ints.find(step->inputs[1]);
      const auto rank = static_cast<std::int64_t>(graph_.shapes.at(step->inputs[0]).size());
      return axes != graph_.ints.end() && axes->second.size() == 1 &&
             (axes->second[0] == -1 || axes->second[0] == rank - 1);
    });
  }

 private:
  static bool moves(int builtin) {
    return builtin == kReshape || builtin == kTranspose || builtin == kBroadcastTo ||
           builtin == kSqueeze || builtin == kExpandDims;
  }
  std::optional<double> number(int tensor) const {
    const auto found = graph_.uniform.find(tensor);
    return found == graph_.uniform.end() ? std::nullopt : std::optional<double>(found->second);
  }
  void push(Role role) { roles_.push_back(role); }

  void add(const Step& step) {
    if (step.inputs.empty() || step.outputs.size() != 1) return push(Role::kOther);
    const bool binary = step.inputs.size() == 2;
    const int a = step.inputs[0], b = step.inputs.back();
    if ((step.builtin == kAdd || step.builtin == kMul || step.builtin == kSub ||
         step.builtin == kDiv) &&
        (!binary || has_activation(step)))
      return push(Role::kOther);
    const auto x = number(a), y = number(b);
    switch (step.builtin) {
      case kMul:
        if (a == b) return push(Role::kSquare);
        return x || y ? scale(x ? *x : *y) : push(Role::kMul);
      case kDiv:
        return y ? scale(1.0 / *y) : push(Role::kOther);
      case kAdd:
        if (!x && !y) return push(a == b ? Role::kOther : Role::kAdd);
        shifts_.push_back(x ? *x : *y);
        return push(Role::kShift);
      case kSub:
        return push(a == b ? Role::kOther : Role::kSub);
      case kSquare:
        return push(Role::kSquare);
      case kSquaredDifference:
        push(a == b ? Role::kOther : Role::kSub);
        return push(Role::kSquare);
      case kSum:
      case kMean:
        if (!binary) return push(Role::kOther);
        sums_.push_back(&step);
        return push(step.builtin == kSum ? Role::kSum : Role::kMean);
      case kRsqrt:
        return push(Role::kRsqrt);
      case kBatchMatmul: {
        const auto* params = static_cast<const tfl::BatchMatMulParams*>(step.params);
        const bool plain = binary && params != nullptr && !params->adj_x;
        return push(plain ? Role::kProduct : Role::kOther);
      }
      case kSoftmax: {
        const auto* params = static_cast<const tfl::SoftmaxParams*>(step.params);
        return push(params != nullptr && params->beta == 1.0F ? Role::kSoftmax : Role::kOther);
      }
      default:
        return push(Role::kOther);
    }
  }
  void scale(double by) {
    factor_ *= by;
    if (by != 1.0) push(Role::kFactor);  // converters broadcast by a product with ones
  }
  static bool has_activation(const Step& step) {
    const auto* params = static_cast<const tfl::ActivationParams*>(step.params);
    return params != nullptr && params->activation != 0;
  }

  const Decomposition& graph_;
  std::vector<Role> roles_;
  std::vector<double> shifts_;
  std::vector<const Step*> sums_;
  double factor_ = 1.0;
};

bool has_epsilon(const Chain& chain, float epsilon) {
  return chain.shifts().size() == 1 && close(chain.shifts().front(), static_cast<double>(epsilon));
}

bool defines_row_norm(const Chain& chain, const tfl::NodeView& node, const CompositeAttrs& attrs) {
  const tfl::TensorView x = node.input(0);
  const std::int64_t cols = x.dim(x.rank() - 1);
  std::vector<Role> roles = {Role::kSquare, Role::kSum, Role::kShift, Role::kRsqrt, Role::kMul};
  double factor = 1.0;
  if (attrs.kind == kRmsNorm && chain.count(Role::kMean) == 1) {
    roles[1] = Role::kMean;
  } else if (attrs.kind == kRmsNorm && cols != 1) {
    roles.insert(roles.begin() + 2, Role::kFactor);
    factor = 1.0 / static_cast<double>(cols);
  }
  if (node.input_count() > 1) roles.push_back(Role::kMul);
  return chain.is(roles) && has_epsilon(chain, attrs.epsilon) && close(chain.factor(), factor) &&
         chain.sums_are_over(cols) && chain.sums_are_over_last_axis();
}

bool defines_group_norm(const Chain& chain, const tfl::NodeView& node,
                        const CompositeAttrs& attrs) {
  const tfl::TensorView x = node.input(0);
  const std::int64_t terms = x.elements() / x.dim(0) / attrs.groups;
  const auto means = chain.count(Role::kMean), sums = chain.count(Role::kSum);
  const auto muls = 1 + (node.input_count() > 1 ? 1 : 0);
  const double factor = std::pow(1.0 / static_cast<double>(terms), static_cast<double>(sums));
  // Mean, differences from it, and mean of their squares; converters compute differences twice.
  return means + sums == 2 && chain.count(Role::kSub) >= 1 && chain.count(Role::kSub) <= 2 &&
         chain.count(Role::kSquare) == 1 && chain.count(Role::kRsqrt) == 1 &&
         chain.count(Role::kMul) == muls &&
         chain.count(Role::kAdd) == (node.input_count() > 2 ? 1 : 0) &&
         chain.count(Role::kOther) + chain.count(Role::kProduct) + chain.count(Role::kSoftmax) ==
             0 &&
         has_epsilon(chain, attrs.epsilon) && close(chain.factor(), factor) &&
         chain.sums_are_over(terms) &&
         // The channels of a group lie side by side.
         (attrs.groups == x.dim(x.rank() - 1) || chain.sums_include_last_axis());
}

/// Whether each head of keys is repeated for the heads of queries that follow each other: an axis
/// of `share` behind that of the heads of keys.
bool repeats_heads(const Decomposition& graph, int key_heads, int share) {
  constexpr std::size_t kAxes = 5;
  bool any = false;
  for (const Step& step : graph.steps) {
    if (step.outputs.size() != 1) continue;
    const std::vector<int>& to = graph.shapes.at(step.outputs[0]);
    for (const int id : step.inputs) {
      const std::vector<int>& from = graph.shapes.at(id);
      if (to.size() != kAxes || from.size() != kAxes || from == to || graph.uniform.count(id) != 0)
        continue;
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        if (from[axis] == to[axis]) continue;
        // batch, head, share, position, element; or batch, position, head, share, element. An
        // axis of `share` in front of the heads could look like the first of these.
        const bool behind = axis == 3 || (axis == 2 && from[3] != key_heads);
        if (!behind || from[axis] != 1 || to[axis] != share || from[axis - 1] != key_heads)
          return false;
        any = true;
      }
    }
  }
  return any;
}

bool defines_attention(const Chain& chain, const Decomposition& graph, const tfl::NodeView& node,
                       const CompositeAttrs& attrs) {
  std::vector<Role> roles = {Role::kProduct, Role::kSoftmax, Role::kProduct};
  if (node.input_count() > 3) roles.insert(roles.begin() + 1, Role::kAdd);
  std::vector<Role> without_factors;
  bool scaled_too_late = false;
  for (const Role role : chain.roles()) {
    if (role != Role::kFactor) {
      without_factors.push_back(role);
    } else if (!without_factors.empty() && without_factors.back() != Role::kProduct) {
      scaled_too_late = true;  // the mask is not scaled
    } else if (without_factors.size() == roles.size()) {
      scaled_too_late = true;
    }
  }
  if (without_factors != roles || scaled_too_late) return false;
  if (!close(chain.factor(), static_cast<double>(attrs.scale))) return false;
  const int heads = node.input(0).dim(2), key_heads = node.input(1).dim(2);
  if (key_heads > 1 && key_heads < heads && !repeats_heads(graph, key_heads, heads / key_heads))
    return false;
  // The axes of the operands are batch, position, head, element: the scores have the positions.
  const auto scores = std::find_if(graph.steps.begin(), graph.steps.end(),
                                   [](const Step& step) { return step.builtin == kBatchMatmul; });
  const std::vector<int>& shape = graph.shapes.at(scores->outputs[0]);
  return shape.size() >= 2 && shape[shape.size() - 2] == node.input(0).dim(1) &&
         shape.back() == node.input(1).dim(1);
}

}  // namespace

bool defines(const Decomposition& graph, const tfl::NodeView& node, const CompositeAttrs& attrs) {
  const bool complete = std::all_of(graph.steps.begin(), graph.steps.end(), [&](const Step& step) {
    const auto known = [&](int id) { return graph.shapes.count(id) != 0; };
    return std::all_of(step.inputs.begin(), step.inputs.end(), known) &&
           std::all_of(step.outputs.begin(), step.outputs.end(), known);
  });
  if (!complete || node.input(0).elements() == 0) return false;
  const Chain chain(graph);
  switch (attrs.kind) {
    case kAttention:
      return defines_attention(chain, graph, node, attrs);
    case kGroupNorm:
      return defines_group_norm(chain, node, attrs);
    default:
      return defines_row_norm(chain, node, attrs);
  }
}

}  // namespace clgpu::ops::composite
