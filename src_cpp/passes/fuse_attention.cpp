#include <algorithm>
#include <optional>

#include "base/index.hpp"
#include "ops/families/batch_matmul.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/composite.hpp"
#include "ops/families/composite/limits.hpp"
#include "ops/families/reshape.hpp"
#include "ops/families/softmax.hpp"
#include "ops/families/transpose.hpp"
#include "passes/layouts.hpp"
#include "passes/pass.hpp"
#include "passes/rewriting.hpp"

namespace clgpu::passes {
namespace {

using ops::BinaryOp;
using List = Axes::List;
using View = Axes::View;

constexpr const char* kPass = "fuse_attention";

// A tensor of the expression.
struct Value {
  int tensor = -1;
  View view;
  float factor = 1.0F;  ///< of the operand that is computed from it
};

// The axes of attention: batches, positions of queries and keys, heads of keys, heads of queries
// that share one, elements of queries and of values.
struct Roles {
  List batches, queries, keys, heads, group, depth, cols;
};

List joined(std::initializer_list<List> lists) {
  List all;
  for (const List& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

bool begins_with(const List& list, const List& start) {
  return list.size() >= start.size() && std::equal(start.begin(), start.end(), list.begin());
}

bool ends_with(const List& list, const List& end) {
  return list.size() >= end.size() && std::equal(end.rbegin(), end.rend(), list.rbegin());
}

// Follows the operations around a SOFTMAX.
class Matcher {
 public:
  Matcher(ir::Graph& graph, Rewriting& rewriting) : graph_(graph), rewriting_(rewriting) {}

  // Why the SOFTMAX at an index is not part of an attention that a kernel computes; empty if it is,
  // and then it is replaced; none if its input is no product of matrices.
  std::optional<std::string> replaces(std::size_t softmax) {
    parts_ = {softmax};
    scale_ = *ops::softmax_factor(graph_.nodes[softmax]);
    std::vector<int> between;  // nodes from the first product to the SOFTMAX, last first
    int product = -1;
    bool alone = true;
    for (int at = graph_.nodes[softmax].inputs[0]; product < 0;) {
      const int writer = rewriting_.writer(at);
      if (writer < 0) return std::nullopt;
      const ir::Node& node = graph_.nodes[uz(writer)];
      alone = alone && rewriting_.only_reader(at) >= 0 && node.epilogue.empty();
      parts_.push_back(uz(writer));
      if (ops::adjoints_of(node)) {
        product = writer;
      } else if (const auto source = source_of(node)) {
        between.push_back(writer);
        at = *source;
      } else {
        return std::nullopt;
      }
    }
    if (!alone) return "other nodes read the scores, or have an activation of them";
    std::vector<Value> q_steps, k_steps, v_steps;
    Value scores;
    if (!multiply(graph_.nodes[uz(product)], q_steps, k_steps, scores))
      return "the axes of its product do not fit";
    std::reverse(between.begin(), between.end());
    for (const int step : between) {
      if (!advance(graph_.nodes[uz(step)], scores)) return "the scores have other axes";
    }
    const List keys = scores.view.back();
    if (!apart(keys)) return "its rows are not the keys";
    scores.tensor = graph_.nodes[softmax].outputs[0];
    // The product with the values.
    for (;;) {
      const int reader = rewriting_.only_reader(scores.tensor);
      if (reader < 0) return "its result has other readers than one product of matrices";
      const ir::Node& node = graph_.nodes[uz(reader)];
      parts_.push_back(uz(reader));
      if (const auto adjoints = ops::adjoints_of(node)) {
        if (!node.epilogue.empty()) return "the product with the values has an activation";
        return finish(node, *adjoints, scores, keys, q_steps, k_steps, v_steps);
      }
      if (!(moves(node) && advance(node, scores)))
        return "its result has other readers than one product of matrices";
    }
  }

 private:
  static bool moves(const ir::Node& node) {
    return node.kind->is_view || ops::permutation_of(node) != nullptr;
  }

  const ops::BinaryAttrs* binary(const ir::Node& node) const {
    const auto* attrs = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
    return attrs != nullptr && !attrs->quantized && node.inputs.size() == 2 ? attrs : nullptr;
  }

  // The factor that a node multiplies a tensor by, and that tensor.
  std::optional<std::pair<int, float>> scaled_by(const ir::Node& node) const {
    const ops::BinaryAttrs* attrs = binary(node);
    if (attrs == nullptr || !node.epilogue.empty()) return {};
    if (attrs->op != BinaryOp::kMul && attrs->op != BinaryOp::kDiv) return {};
    for (const int slot : {1, 0}) {
      if (slot == 0 && attrs->op == BinaryOp::kDiv) continue;
      const int other = node.inputs[uz(1 - slot)];
      const auto number = number_of(graph_.tensor(node.inputs[uz(slot)]));
      if (!number || graph_.tensor(other).shape != graph_.tensor(node.outputs[0]).shape) continue;
      return std::pair(other, attrs->op == BinaryOp::kMul ? *number : 1.0F / *number);
    }
    return {};
  }

  // The input that the scores of a node come from; notes a mask that it adds.
  std::optional<int> source_of(const ir::Node& node) {
    if (moves(node)) return node.inputs[0];
    if (const auto scaled = scaled_by(node)) {
      scale_ *= scaled->second;
      return scaled->first;
    }
    const ops::BinaryAttrs* attrs = binary(node);
    if (attrs == nullptr || attrs->op != BinaryOp::kAdd || adds_mask_) return {};
    if (scale_ != 1.0F) return {};  // the mask is scaled, too
    // The scores have the shape of the sum, and come from a product.
    for (const int slot : {0, 1}) {
      const int scores = node.inputs[uz(slot)], mask = node.inputs[uz(1 - slot)];
      if (graph_.tensor(scores).shape != graph_.tensor(node.outputs[0]).shape) continue;
      if (!comes_from_product(scores)) continue;
      mask_.tensor = mask;
      adds_mask_ = true;
      return scores;
    }
    return {};
  }

  bool comes_from_product(int tensor) const {
    for (int writer = rewriting_.writer(tensor); writer >= 0;) {
      const ir::Node& node = graph_.nodes[uz(writer)];
      if (ops::adjoints_of(node)) return true;
      const auto scaled = scaled_by(node);
      if (!moves(node) && !scaled) return false;
      writer = rewriting_.writer(scaled ? scaled->first : node.inputs[0]);
    }
    return false;
  }

  // The value behind a node of one input that computes nothing but a factor, or that adds the mask.
  bool advance(const ir::Node& node, Value& value) {
    const ir::Shape& shape = graph_.tensor(node.outputs[0]).shape;
    if (node.kind->is_view) {
      if (!axes_.reshape(value.view, shape)) return false;
    } else if (const std::vector<int>* axes = ops::permutation_of(node)) {
      View view;
      for (const int axis : *axes) view.push_back(value.view[uz(axis)]);
      value.view = std::move(view);
    } else if (const ops::BinaryAttrs* attrs = binary(node);
               attrs != nullptr && attrs->op == BinaryOp::kAdd) {
      if (!add_mask(value.view)) return false;
    }
    value.tensor = node.outputs[0];
    return true;
  }

  bool add_mask(const View& scores) {
    const ir::Shape& shape = graph_.tensor(mask_.tensor).shape;
    if (graph_.tensor(mask_.tensor).dtype != DType::kF32) return false;
    mask_.view = axes_.fresh(shape);
    if (mask_.view.size() > scores.size()) return false;
    for (std::size_t i = 1; i <= mask_.view.size(); ++i) {
      const List& axis = mask_.view[mask_.view.size() - i];
      if (!axis.empty() && !axes_.unite(scores[scores.size() - i], axis)) return false;
    }
    return true;
  }

  // An operand of a product, and what it is computed from by new shapes, transpositions and
  // factors: the farthest first. Empty if it has no elements.
  std::vector<Value> steps_of(int operand) {
    if (graph_.tensor(operand).shape.elements() == 0) return {};
    std::vector<int> path;
    int source = operand;
    for (int writer = rewriting_.writer(source); writer >= 0; writer = rewriting_.writer(source)) {
      const ir::Node& node = graph_.nodes[uz(writer)];
      const auto scaled = scaled_by(node);
      if (!moves(node) && !scaled) break;
      path.push_back(writer);
      source = scaled ? scaled->first : node.inputs[0];
    }
    std::vector<Value> steps{{source, axes_.fresh(graph_.tensor(source).shape)}};
    for (auto step = path.rbegin(); step != path.rend(); ++step) {
      const ir::Node& node = graph_.nodes[uz(*step)];
      Value next = steps.back();
      next.factor = 1.0F;
      if (const auto scaled = scaled_by(node)) {
        for (Value& earlier : steps) earlier.factor *= scaled->second;
      }
      if (!advance(node, next)) {
        // The axes in front of it are not those behind it.
        steps.clear();
        next = {node.outputs[0], axes_.fresh(graph_.tensor(node.outputs[0]).shape)};
      }
      steps.push_back(next);
      parts_.push_back(uz(*step));
    }
    return steps;
  }

  bool multiply(const ir::Node& product, std::vector<Value>& x_steps, std::vector<Value>& y_steps,
                Value& result) {
    if (graph_.tensor(product.inputs[0]).dtype != DType::kF32 ||
        graph_.tensor(product.inputs[1]).dtype != DType::kF32)
      return false;
    x_steps = steps_of(product.inputs[0]);
    y_steps = steps_of(product.inputs[1]);
    if (x_steps.empty() || y_steps.empty()) return false;
    const auto adjoints = *ops::adjoints_of(product);
    result.tensor = product.outputs[0];
    if (!product_of(x_steps.back().view, y_steps.back().view, adjoints, result.view, depth_))
      return false;
    rows_of_x_ = result.view[result.view.size() - 2];
    rows_of_y_ = result.view.back();
    return true;
  }

  bool product_of(const View& x, const View& y, const ops::Adjoints& adjoints, View& result,
                  List& summed) {
    const std::size_t rank = std::max(x.size(), y.size());
    result.clear();
    for (std::size_t i = rank; i > 2; --i) {
      const List a = i <= x.size() ? x[x.size() - i] : List{};
      const List b = i <= y.size() ? y[y.size() - i] : List{};
      if (!a.empty() && !b.empty() && !axes_.unite(a, b)) return false;
      result.push_back(a.empty() ? b : a);
    }
    const List m = x[x.size() - (adjoints.x ? 1 : 2)], k = x[x.size() - (adjoints.x ? 2 : 1)];
    const List n = y[y.size() - (adjoints.y ? 2 : 1)], l = y[y.size() - (adjoints.y ? 1 : 2)];
    if (!axes_.unite(k, l)) return false;
    summed = k;
    result.push_back(m);
    result.push_back(n);
    return true;
  }

  // Which factor of the first product has the keys: those along which the SOFTMAX runs.
  bool apart(const List& keys) {
    const List wanted = axes_.parts(keys);
    keys_are_y_ = wanted == axes_.parts(rows_of_y_);
    return keys_are_y_ || wanted == axes_.parts(rows_of_x_);
  }

  std::string finish(const ir::Node& product, const ops::Adjoints& adjoints, const Value& scores,
                     const List& keys, std::vector<Value>& x_steps, std::vector<Value>& y_steps,
                     std::vector<Value>& v_steps) {
    const bool first = product.inputs[0] == scores.tensor;
    const int other = product.inputs[first ? 1 : 0];
    if (other == scores.tensor || graph_.tensor(other).dtype != DType::kF32)
      return "the values are no tensor of floats";
    v_steps = steps_of(other);
    if (v_steps.empty()) return "the values have no elements";
    Value result{product.outputs[0], {}};
    List summed;
    const View& values = v_steps.back().view;
    if (!product_of(first ? scores.view : values, first ? values : scores.view, adjoints,
                    result.view, summed))
      return "the axes of the product with the values do not fit";
    if (axes_.parts(summed) != axes_.parts(keys)) return "the values are not added along the keys";
    const List cols = result.view[result.view.size() - (first ? 1 : 2)];
    const std::vector<Value>& q_steps = keys_are_y_ ? x_steps : y_steps;
    const std::vector<Value>& k_steps = keys_are_y_ ? y_steps : x_steps;
    std::vector<Value> results{result};
    std::vector<std::size_t> behind;
    for (;;) {
      const int reader = rewriting_.only_reader(result.tensor);
      if (reader < 0 || !moves(graph_.nodes[uz(reader)]) ||
          !advance(graph_.nodes[uz(reader)], result))
        break;
      behind.push_back(uz(reader));
      results.push_back(result);
    }
    // Operands that are farthest away, and the nearest result with their order of axes.
    for (const Value& q : q_steps) {
      for (const Value& k : k_steps) {
        for (const Value& v : v_steps) {
          if (v.factor != 1.0F) continue;  // it could only follow the sums
          for (std::size_t i = 0; i < results.size(); ++i) {
            const auto roles = roles_of(q, k, v, results[i], keys, cols);
            if (!roles) continue;
            if (size(roles->depth) > ops::kMostHeadDepth) return "its heads are too large";
            scale_ *= q.factor * k.factor;
            parts_.insert(parts_.end(), behind.begin(),
                          behind.begin() + static_cast<std::ptrdiff_t>(i));
            rewrite(*roles, q.tensor, k.tensor, v.tensor, results[i].tensor);
            return {};
          }
        }
      }
    }
    return "no kernel has its order of axes";
  }

  // The axes by their roles if the tensors have the kernel's layouts.
  std::optional<Roles> roles_of(const Value& q, const Value& k, const Value& v, const Value& result,
                                const List& keys, const List& cols) const {
    Roles roles;
    roles.keys = axes_.parts(keys), roles.depth = axes_.parts(depth_);
    roles.cols = axes_.parts(cols);
    // Keys: [batches, keys, heads, depth].
    const List of_k = axes_.order(k.view);
    if (!ends_with(of_k, roles.depth)) return {};
    const auto end = of_k.end() - static_cast<std::ptrdiff_t>(roles.depth.size());
    const auto at = std::search(of_k.begin(), end, roles.keys.begin(), roles.keys.end());
    if (at == end && !roles.keys.empty()) return {};
    roles.batches.assign(of_k.begin(), at);
    roles.heads.assign(at + static_cast<std::ptrdiff_t>(roles.keys.size()), end);
    if (axes_.order(v.view) != joined({roles.batches, roles.keys, roles.heads, roles.cols}))
      return {};
    // Queries: [batches, queries, heads, group, depth].
    const List of_q = axes_.order(q.view);
    if (!begins_with(of_q, roles.batches) || !ends_with(of_q, roles.depth) ||
        of_q.size() < roles.batches.size() + roles.depth.size())
      return {};
    const List rest(of_q.begin() + static_cast<std::ptrdiff_t>(roles.batches.size()),
                    of_q.end() - static_cast<std::ptrdiff_t>(roles.depth.size()));
    auto heads = std::search(rest.begin(), rest.end(), roles.heads.begin(), roles.heads.end());
    if (heads == rest.end() && !roles.heads.empty()) return {};
    if (roles.heads.empty()) {
      // The axes of the mask are positions.
      const List of_mask = axes_.order(mask_.view);
      heads = rest.end();
      while (adds_mask_ && heads != rest.begin() &&
             std::find(of_mask.begin(), of_mask.end(), *(heads - 1)) == of_mask.end())
        --heads;
    }
    roles.queries.assign(rest.begin(), heads);
    roles.group.assign(heads + static_cast<std::ptrdiff_t>(roles.heads.size()), rest.end());
    if (axes_.order(result.view) !=
        joined({roles.batches, roles.queries, roles.heads, roles.group, roles.cols}))
      return {};
    if (adds_mask_ && !mask_shape(roles)) return {};
    return roles;
  }

  int size(const List& axes) const { return static_cast<int>(axes_.size(axes)); }

  // The shape in which the mask broadcasts to [batches, heads, queries, keys].
  std::optional<ir::Shape> mask_shape(const Roles& roles) const {
    const List of_mask = axes_.order(mask_.view);
    const List axes[] = {roles.batches, joined({roles.heads, roles.group}), roles.queries,
                         roles.keys};
    for (unsigned choice = 0; choice < 16; ++choice) {
      List wanted;
      ir::Shape shape{1, 1, 1, 1};
      for (int i = 0; i < 4; ++i) {
        if ((choice >> i & 1U) == 0) continue;
        wanted.insert(wanted.end(), axes[i].begin(), axes[i].end());
        shape[i] = size(axes[i]);
      }
      if (wanted == of_mask) return shape;
    }
    return {};
  }

  // A tensor in this shape: itself, or a view of it.
  int shaped(int tensor, const ir::Shape& shape, std::size_t before, const ir::Node& of) {
    if (tensor < 0 || graph_.tensor(tensor).shape == shape) return tensor;
    const int result = rewriting_.add_tensor(shape);
    rewriting_.insert(before, ops::reshape_of(of, tensor, result, shape));
    return result;
  }

  void rewrite(const Roles& roles, int q, int k, int v, int result) {
    const auto at = uz(rewriting_.writer(result));
    const ir::Node last = graph_.nodes[at];
    const int batches = size(roles.batches), queries = size(roles.queries);
    const int keys = size(roles.keys), key_heads = size(roles.heads);
    const int heads = key_heads * size(roles.group);
    const int depth = size(roles.depth), cols = size(roles.cols);
    q = shaped(q, {batches, queries, heads, depth}, at, last);
    k = shaped(k, {batches, keys, key_heads, depth}, at, last);
    v = shaped(v, {batches, keys, key_heads, cols}, at, last);
    const int mask = adds_mask_ ? shaped(mask_.tensor, *mask_shape(roles), at, last) : -1;
    ir::rely_on_shapes(graph_);  // which axes are heads, and the shapes above
    const ir::Shape shape{batches, queries, heads, cols};
    const ir::Shape wanted = graph_.tensor(result).shape;
    if (wanted == shape) {
      rewriting_.replace(at, ops::attention(last, q, k, v, mask, scale_, result), parts_);
      return;
    }
    const int own = rewriting_.add_tensor(shape);
    rewriting_.insert(at, ops::attention(last, q, k, v, mask, scale_, own));
    rewriting_.replace(at, ops::reshape_of(last, own, result, wanted), parts_);
  }

  ir::Graph& graph_;
  Rewriting& rewriting_;
  Axes axes_;
  std::vector<std::size_t> parts_;
  Value mask_;
  bool adds_mask_ = false, keys_are_y_ = true;
  float scale_ = 1.0F;
  List depth_, rows_of_x_, rows_of_y_;
};

}  // namespace

void fuse_attention(ir::Graph& graph) {
  Rewriting rewriting(graph, kPass);
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    if (rewriting.node(i) == nullptr || !ops::softmax_factor(graph.nodes[i])) continue;
    if (graph.tensor(graph.nodes[i].outputs[0]).dtype != DType::kF32) continue;
    const auto problem = Matcher(graph, rewriting).replaces(i);
    if (problem && !problem->empty())
      ir::declined(graph, kPass, graph.nodes[i].tflite_index, *problem);
  }
  rewriting.finish();
}

}  // namespace clgpu::passes
