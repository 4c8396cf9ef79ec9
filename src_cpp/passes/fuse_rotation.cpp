#include <algorithm>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/concatenation.hpp"
#include "ops/families/rotate.hpp"
#include "ops/families/split.hpp"
#include "ops/families/strided_slice.hpp"
#include "ops/families/unary.hpp"
#include "passes/pass.hpp"
#include "passes/rewriting.hpp"

namespace clgpu::passes {
namespace {

using ops::BinaryOp;

// The first or the second half of the last axis of x, or of x with its sign changed.
struct Half {
  int x = -1;
  bool second = false, negative = false;
};

// What a concatenation or a sum turns, found from the operations in front of it.
class Finder {
 public:
  Finder(const ir::Graph& graph, const Rewriting& rewriting)
      : graph_(graph), rewriting_(rewriting) {}

  int x = -1, cosine = -1, sine = -1;
  std::vector<std::size_t> parts;

  bool finds(const ir::Node& node) {
    parts.clear();
    return is_f32(node.outputs[0]) && node.epilogue.empty() &&
           (joins_turned_halves(node) || adds_turned_halves(node)) && fits() &&
           graph_.tensor(node.outputs[0]).shape == graph_.tensor(x).shape;
  }

 private:
  bool is_f32(int tensor) const { return graph_.tensor(tensor).dtype == DType::kF32; }

  const ir::Node* writer(int tensor) {
    const int index = rewriting_.writer(tensor);
    if (index < 0) return nullptr;
    parts.push_back(uz(index));
    return &graph_.nodes[uz(index)];
  }

  // The operands of an operation on two tensors.
  std::optional<std::pair<int, int>> operands(const ir::Node* node, BinaryOp op) const {
    if (node == nullptr || node->inputs.size() != 2 || !node->epilogue.empty()) return {};
    const auto* attrs = dynamic_cast<const ops::BinaryAttrs*>(node->attrs.get());
    if (attrs == nullptr || attrs->op != op || attrs->quantized) return {};
    return std::pair(node->inputs[0], node->inputs[1]);
  }

  // Whether a node joins two halves along the last axis.
  bool joins_two(const ir::Node* node) const {
    if (node == nullptr || node->inputs.size() != 2 || !node->epilogue.empty()) return false;
    const auto* attrs = dynamic_cast<const ops::ConcatenationAttrs*>(node->attrs.get());
    const int rank = graph_.tensor(node->outputs[0]).shape.rank();
    return attrs != nullptr && !attrs->new_axis && (attrs->axis == rank - 1 || attrs->axis == -1) &&
           graph_.tensor(node->inputs[0]).shape == graph_.tensor(node->inputs[1]).shape;
  }

  std::optional<Half> half_of(int tensor) {
    const ir::Node* node = writer(tensor);
    if (node == nullptr || !node->epilogue.empty()) return {};
    if (const int whole = ops::split_into_halves(graph_, *node); whole >= 0)
      return Half{whole, tensor == node->outputs[1]};
    if (ops::unary_op(*node) == ops::UnaryOp::kNeg) return negated(half_of(node->inputs[0]));
    if (const auto factors = operands(node, BinaryOp::kMul)) {
      for (const auto& [a, b] : {*factors, std::pair(factors->second, factors->first)}) {
        const auto number = number_of(graph_.tensor(b));
        if (number && *number == -1.0F) return negated(half_of(a));
      }
      return {};
    }
    const auto* slice = dynamic_cast<const ops::SliceAttrs*>(node->attrs.get());
    if (slice == nullptr) return {};
    return sliced(*slice, node->inputs[0], tensor);
  }

  static std::optional<Half> negated(std::optional<Half> half) {
    if (half) half->negative = !half->negative;
    return half;
  }

  std::optional<Half> sliced(const ops::SliceAttrs& slice, int whole, int part) const {
    const ir::Shape &from = graph_.tensor(whole).shape, &to = graph_.tensor(part).shape;
    ir::Shape half = from;
    if (from.rank() == 0 || from.back(0) % 2 != 0) return {};
    half[from.rank() - 1] /= 2;
    if (to != half || static_cast<int>(slice.rules.size()) != from.rank()) return {};
    for (const ops::AxisRule& rule : slice.rules) {
      const bool known =
          rule.kind == ops::AxisRule::Kind::kWhole ||
          (rule.kind == ops::AxisRule::Kind::kRange && rule.stride == 1 && rule.place < 0);
      if (!known) return {};
    }
    // The other axes are whole, as they keep their sizes.
    const ops::AxisRule& last = slice.rules.back();
    int begin = last.kind == ops::AxisRule::Kind::kWhole || last.from_start ? 0 : last.begin;
    if (begin < 0) begin += from.back(0);
    if (begin != 0 && begin != half.back(0)) return {};
    return Half{whole, begin != 0};
  }

  // A half times a table.
  struct Term {
    Half half;
    int table = -1;
  };
  std::optional<Term> term_of(int tensor) {
    const auto factors = operands(writer(tensor), BinaryOp::kMul);
    if (!factors) return {};
    for (const auto& [a, b] : {*factors, std::pair(factors->second, factors->first)}) {
      const std::size_t before = parts.size();
      if (const auto half = half_of(a)) return Term{*half, b};
      parts.resize(before);
    }
    return {};
  }

  // [a * cos - b * sin, b * cos + a * sin]
  bool joins_turned_halves(const ir::Node& node) {
    if (!joins_two(&node)) return false;
    const auto low = operands(writer(node.inputs[0]), BinaryOp::kSub);
    const auto high = operands(writer(node.inputs[1]), BinaryOp::kAdd);
    if (!low || !high) return false;
    const auto a = term_of(low->first), b = term_of(low->second);
    auto c = term_of(high->first), d = term_of(high->second);
    if (!a || !b || !c || !d) return false;
    if (!c->half.second) std::swap(c, d);
    for (const Term& term : {*a, *b, *c, *d}) {
      if (term.half.x != a->half.x || term.half.negative) return false;
    }
    if (a->half.second || !b->half.second || !c->half.second || d->half.second) return false;
    if (a->table != c->table || b->table != d->table) return false;
    x = a->half.x, cosine = a->table, sine = b->table;
    return true;
  }

  // x * cos + [-b, a] * sin
  bool adds_turned_halves(const ir::Node& node) {
    const auto sum = operands(&node, BinaryOp::kAdd);
    if (!sum) return false;
    for (const auto& [left, right] : {*sum, std::pair(sum->second, sum->first)}) {
      parts.clear();
      const auto straight = operands(writer(left), BinaryOp::kMul);
      const auto crossed = operands(writer(right), BinaryOp::kMul);
      if (!straight || !crossed) return false;
      for (const auto& [turned, table] : {*crossed, std::pair(crossed->second, crossed->first)}) {
        const std::size_t before = parts.size();
        const ir::Node* join = writer(turned);
        if (joins_two(join)) {
          const auto low = half_of(join->inputs[0]), high = half_of(join->inputs[1]);
          if (low && high && low->x == high->x && low->second && low->negative && !high->second &&
              !high->negative && (straight->first == low->x || straight->second == low->x)) {
            x = low->x, sine = table;
            cosine = straight->first == x ? straight->second : straight->first;
            return true;
          }
        }
        parts.resize(before);
      }
    }
    return false;
  }

  // Whether the tables have the shapes that the node takes.
  bool fits() const {
    const ir::Shape &of_x = graph_.tensor(x).shape, &table = graph_.tensor(cosine).shape;
    if (graph_.tensor(sine).shape != table || table.rank() > of_x.rank() || !is_f32(x) ||
        !is_f32(cosine) || !is_f32(sine) || table.rank() == 0)
      return false;
    for (int i = 1; i < table.rank(); ++i) {
      if (table.back(i) != 1 && table.back(i) != of_x.back(i)) return false;
    }
    return table.back(0) == of_x.back(0) || table.back(0) == of_x.back(0) / 2;
  }

  const ir::Graph& graph_;
  const Rewriting& rewriting_;
};

}  // namespace

void fuse_rotation(ir::Graph& graph) {
  Rewriting rewriting(graph, "fuse_rotation");
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    Finder finder(graph, rewriting);
    const ir::Node& node = graph.nodes[i];
    if (rewriting.node(i) == nullptr || node.outputs.size() != 1 || !finder.finds(node)) continue;
    rewriting.replace(i, ops::rotation(node, finder.x, finder.cosine, finder.sine), finder.parts);
    ir::rely_on_shapes(graph);  // which parts are halves
  }
  // A turned row that only goes to a cache is written there at once.
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    if (rewriting.node(i) == nullptr || graph.nodes[i].inputs.size() < 2) continue;
    const int turned = rewriting.writer(graph.nodes[i].inputs[1]);
    if (turned < 0 || rewriting.only_reader(graph.nodes[i].inputs[1]) != static_cast<int>(i))
      continue;
    if (auto node = ops::rotated_update(graph, graph.nodes[i], graph.nodes[uz(turned)]))
      rewriting.replace(i, std::move(*node), {uz(turned)});
  }
  rewriting.finish();
}

}  // namespace clgpu::passes
