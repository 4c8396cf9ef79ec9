#include "passes/moments.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/unary.hpp"
#include "passes/rewriting.hpp"

namespace clgpu::passes {
namespace {

using ops::BinaryOp;
using ops::UnaryOp;

// The content of a tensor, in terms of the tensor x: `s` is the scale and `b` the bias, both
// optional constants with one number per channel. Converters write the same normalisation in many
// ways; this tracks the result of each operation on its operands, and so covers all that end in
// kResult.
enum class Form {
  kSource,      // x
  kMean,        // of x over some axes
  kCentred,     // x - mean
  kSquare,      // (x - mean)^2
  kVariance,    // mean of that
  kShifted,     // variance + epsilon
  kDeviation,   // sqrt(variance + epsilon)
  kFactor,      // s / sqrt(variance + epsilon)
  kScaled,      // x * factor
  kScaledMean,  // mean * factor
  kOffset,      // b - mean * factor
  kResult,      // (x - mean) * factor + b
};

struct Value {
  Form form;
  float epsilon = 0.0F;
  int scale = -1, bias = -1;  // tensors
};

// The values of the tensors that are computed from a tensor and its mean.
class Follower {
 public:
  Follower(const ir::Graph& graph, const Moments& moments, int source, int mean)
      : graph_(graph),
        moments_(moments),
        rank_(graph.tensor(source).shape.rank()),
        channels_(graph.tensor(source).shape.back(0)) {
    values_[source] = {Form::kSource};
    values_[mean] = {Form::kMean};
  }

  // Records what the node computes; returns whether that has a form.
  bool follow(const ir::Node& node) {
    if (node.outputs.size() != 1 || values_.count(node.outputs[0]) > 0) return false;
    // A constant with more axes than x gives the result more axes, too; that of the normalisation
    // has those of x.
    if (graph_.tensor(node.outputs[0]).shape.rank() != rank_) return false;
    const std::optional<Value> value = value_of(node);
    // Only the last operation may have an activation.
    if (!value || (value->form != Form::kResult && !node.epilogue.empty())) return false;
    values_[node.outputs[0]] = *value;
    if (!node.epilogue.empty()) close(node.outputs[0]);
    return true;
  }

  // Records that no reader of the tensor is part of the normalisation.
  void close(int tensor) { closed_.insert(tensor); }

  const Value& value(int tensor) const { return values_.at(tensor); }

 private:
  bool is(int tensor, Form form) const {
    const auto found = values_.find(tensor);
    return found != values_.end() && found->second.form == form && closed_.count(tensor) == 0;
  }

  // A constant with one number per channel, which also fits tensors of other sizes.
  bool per_channel(int tensor) const {
    const ir::Tensor& t = graph_.tensor(tensor);
    return t.is_constant() && t.dtype == DType::kF32 && channels_ > 1 &&
           t.shape.elements() == channels_ && t.shape.back(0) == channels_;
  }

  std::optional<Value> value_of(const ir::Node& node) const {
    if (moments_.is_mean(graph_, node)) {
      if (is(node.inputs[0], Form::kSquare)) return Value{Form::kVariance};
      return {};
    }
    if (const auto op = ops::unary_op(node)) return of_one(*op, node.inputs[0]);
    const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
    if (binary == nullptr || node.inputs.size() != 2) return {};
    const int a = node.inputs[0], b = node.inputs[1];
    if (auto value = of_two(binary->op, a, b)) return value;
    const bool commutes = binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kMul ||
                          binary->op == BinaryOp::kSquaredDifference;
    return commutes ? of_two(binary->op, b, a) : std::nullopt;
  }

  std::optional<Value> of_one(UnaryOp op, int a) const {
    if (op == UnaryOp::kSquare && is(a, Form::kCentred)) return Value{Form::kSquare};
    if (!is(a, Form::kShifted)) return {};
    const float epsilon = value(a).epsilon;
    if (op == UnaryOp::kRsqrt) return Value{Form::kFactor, epsilon};
    if (op == UnaryOp::kSqrt) return Value{Form::kDeviation, epsilon};
    return {};
  }

  std::optional<Value> of_two(BinaryOp op, int a, int b) const {
    const auto with = [&](int tensor, Form form) {
      Value value = values_.at(tensor);
      value.form = form;
      return value;
    };
    switch (op) {
      case BinaryOp::kSquaredDifference:
        if (is(a, Form::kSource) && is(b, Form::kMean)) return Value{Form::kSquare};
        break;
      case BinaryOp::kSub:
        if (is(a, Form::kSource) && is(b, Form::kMean)) return Value{Form::kCentred};
        if (is(a, Form::kScaled) && is(b, Form::kScaledMean) && alike(a, b))
          return with(a, Form::kResult);
        if (per_channel(a) && is(b, Form::kScaledMean)) {
          Value value = with(b, Form::kOffset);
          value.bias = a;
          return value;
        }
        break;
      case BinaryOp::kDiv:
        if (is(a, Form::kCentred) && is(b, Form::kDeviation)) return with(b, Form::kResult);
        break;
      case BinaryOp::kMul:
        if (is(a, Form::kCentred) && is(b, Form::kCentred)) return Value{Form::kSquare};
        if (is(a, Form::kCentred) && is(b, Form::kFactor)) return with(b, Form::kResult);
        if (is(a, Form::kSource) && is(b, Form::kFactor)) return with(b, Form::kScaled);
        if (is(a, Form::kMean) && is(b, Form::kFactor)) return with(b, Form::kScaledMean);
        for (const Form form : {Form::kFactor, Form::kResult}) {
          if (!is(a, form) || value(a).scale >= 0 || value(a).bias >= 0 || !per_channel(b))
            continue;
          Value value = with(a, form);
          value.scale = b;
          return value;
        }
        break;
      case BinaryOp::kAdd:
        if (is(a, Form::kVariance)) {
          // Without an epsilon, a constant x has no result.
          const auto epsilon = number_of(graph_.tensor(b));
          if (epsilon && *epsilon > 0) return Value{Form::kShifted, *epsilon};
        }
        if (is(a, Form::kScaled) && is(b, Form::kOffset) && alike(a, b))
          return with(b, Form::kResult);
        if (is(a, Form::kResult) && value(a).bias < 0 && per_channel(b)) {
          Value value = with(a, Form::kResult);
          value.bias = b;
          return value;
        }
        break;
      case BinaryOp::kPow:
        if (const auto power = number_of(graph_.tensor(b))) return of_power(a, *power);
        break;
      default:
        break;
    }
    return {};
  }

  std::optional<Value> of_power(int a, float power) const {
    if (power == 2.0F) return of_one(UnaryOp::kSquare, a);
    if (power == 0.5F) return of_one(UnaryOp::kSqrt, a);
    if (power == -0.5F) return of_one(UnaryOp::kRsqrt, a);
    return {};
  }

  // Whether two values have the same factor.
  bool alike(int a, int b) const {
    return value(a).epsilon == value(b).epsilon && value(a).scale == value(b).scale;
  }

  const ir::Graph& graph_;
  const Moments& moments_;
  int rank_, channels_;
  std::map<int, Value> values_;
  std::set<int> closed_;
};

}  // namespace

void fuse_moments(ir::Graph& graph, const Moments& moments) {
  std::vector<std::vector<int>> readers = ir::readers_of(graph);
  const std::vector<bool> is_output = ir::output_mask(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  for (std::size_t first = 0; first < graph.nodes.size(); ++first) {
    if (removed[first] || !moments.is_mean(graph, graph.nodes[first])) continue;
    const int source = graph.nodes[first].inputs[0];
    if (graph.tensor(source).dtype != DType::kF32 || !graph.nodes[first].epilogue.empty()) continue;
    Follower follower(graph, moments, source, graph.nodes[first].outputs[0]);
    std::vector<std::size_t> followed{first};
    std::map<int, std::size_t> results;  // tensor -> the last node of each chain
    for (std::size_t i = first + 1; i < graph.nodes.size(); ++i) {
      const ir::Node& node = graph.nodes[i];
      if (removed[i] || !follower.follow(node)) continue;
      followed.push_back(i);
      const int result = node.outputs[0];
      if (follower.value(result).form != Form::kResult) continue;
      results[result] = i;
      for (const int input : node.inputs) results.erase(input);  // this node scales or biases it
      if (readers[uz(result)].size() != 1 || is_output[uz(result)]) follower.close(result);
    }
    if (results.empty()) continue;
    int into = -1;
    for (const auto& [tensor, i] : results) {
      const Value value = follower.value(tensor);
      ir::Node fused = moments.node(graph.nodes[i], source, value.epsilon, value.scale, value.bias);
      graph.nodes[i] = std::move(fused);
      into = graph.nodes[i].tflite_index;
    }
    // Nodes without readers are removed, so that later passes see the real readers of x.
    for (auto i = followed.rbegin(); i != followed.rend(); ++i) {
      const int result = graph.nodes[*i].outputs[0];
      if (results.count(result) > 0 || is_output[uz(result)]) continue;
      bool read = false;
      for (const int reader : readers[uz(result)]) {
        const ir::Node& node = graph.nodes[uz(reader)];
        const auto& inputs = node.inputs;
        read = read || (!removed[uz(reader)] &&
                        std::find(inputs.begin(), inputs.end(), result) != inputs.end());
      }
      if (read) continue;
      removed[*i] = true;
      ir::applied(graph, moments.pass, graph.nodes[*i].tflite_index, into);
    }
  }
  ir::remove_nodes(graph, removed);
}

}  // namespace clgpu::passes
