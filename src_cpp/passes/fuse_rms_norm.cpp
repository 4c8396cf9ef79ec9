#include <cmath>
#include <optional>

#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/composite.hpp"
#include "ops/families/reduce.hpp"
#include "ops/families/unary.hpp"
#include "passes/pass.hpp"
#include "passes/rewriting.hpp"

namespace clgpu::passes {
namespace {

using ops::BinaryOp;
using ops::UnaryOp;

// The chain from x to 1 / sqrt(mean of x^2 + epsilon), followed backwards.
class Chain {
 public:
  Chain(const ir::Graph& graph, const Rewriting& rewriting)
      : graph_(graph), rewriting_(rewriting) {}

  int x = -1;
  float epsilon = 0.0F;
  std::vector<std::size_t> parts;

  // Whether the tensor is the end of such a chain.
  bool ends_in(int tensor) {
    const ir::Node* root = writer(tensor);
    if (root == nullptr || ops::unary_op(*root) != UnaryOp::kRsqrt) return false;
    const ir::Node* shift = writer(root->inputs[0]);
    const auto epsilon_of = with_number(shift, BinaryOp::kAdd);
    if (!epsilon_of || epsilon_of->second <= 0.0F) return false;
    epsilon = epsilon_of->second;
    const ir::Node* mean = writer(epsilon_of->first);
    std::optional<float> factor;
    if (const auto product = with_number(mean, BinaryOp::kMul)) {
      factor = product->second;
      mean = writer(product->first);
    } else if (const auto quotient = with_number(mean, BinaryOp::kDiv)) {
      factor = 1.0F / quotient->second;
      mean = writer(quotient->first);
    }
    if (mean == nullptr || !mean->epilogue.empty()) return false;
    const ops::RowReduction kind = ops::row_reduction(graph_, *mean);
    const auto cols = static_cast<float>(graph_.tensor(mean->inputs[0]).shape.back(0));
    if (kind == ops::RowReduction::kNone ||
        (kind == ops::RowReduction::kMean) == factor.has_value())
      return false;
    // Of the rounding of one division.
    if (factor && std::abs(*factor * cols - 1.0F) > 1e-6F) return false;
    const ir::Node* square = writer(mean->inputs[0]);
    if (square == nullptr || !square->epilogue.empty()) return false;
    const auto* product = binary(square, BinaryOp::kMul);
    const bool twice = product != nullptr && square->inputs[0] == square->inputs[1];
    if (!twice && ops::unary_op(*square) != UnaryOp::kSquare) return false;
    x = square->inputs[0];
    return graph_.tensor(x).dtype == DType::kF32;
  }

  static const ops::BinaryAttrs* binary(const ir::Node* node, BinaryOp op) {
    if (node == nullptr || node->inputs.size() != 2) return nullptr;
    const auto* attrs = dynamic_cast<const ops::BinaryAttrs*>(node->attrs.get());
    return attrs != nullptr && attrs->op == op && !attrs->quantized ? attrs : nullptr;
  }

 private:
  // The node that writes a tensor, or its source if it only gives the tensor another shape.
  const ir::Node* writer(int tensor) {
    for (int at = rewriting_.writer(tensor); at >= 0;
         at = rewriting_.writer(graph_.nodes[uz(at)].inputs[0])) {
      parts.push_back(uz(at));
      if (!graph_.nodes[uz(at)].kind->is_view) return &graph_.nodes[uz(at)];
    }
    return nullptr;
  }

  // The other operand of an operation with a number.
  std::optional<std::pair<int, float>> with_number(const ir::Node* node, BinaryOp op) const {
    if (binary(node, op) == nullptr || !node->epilogue.empty()) return std::nullopt;
    for (const int slot : {1, 0}) {
      if (slot == 0 && op == BinaryOp::kDiv) continue;
      if (const auto number = number_of(graph_.tensor(node->inputs[uz(slot)])))
        return std::pair(node->inputs[uz(1 - slot)], *number);
    }
    return std::nullopt;
  }

  const ir::Graph& graph_;
  const Rewriting& rewriting_;
};

// One number for each element of a row.
bool is_weight(const ir::Tensor& weight, const ir::Shape& x) {
  return weight.is_constant() && weight.dtype == DType::kF32 && weight.shape.rank() > 0 &&
         weight.shape.rank() <= x.rank() && weight.shape.elements() == x.back(0) &&
         weight.shape.back(0) == x.back(0);
}

}  // namespace

void fuse_rms_norm(ir::Graph& graph) {
  Rewriting rewriting(graph, "fuse_rms_norm");
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    const ir::Node& product = graph.nodes[i];
    if (Chain::binary(&product, BinaryOp::kMul) == nullptr || !product.epilogue.empty()) continue;
    for (const int slot : {0, 1}) {
      const int x = product.inputs[uz(slot)], factor = product.inputs[uz(1 - slot)];
      Chain chain(graph, rewriting);
      if (!chain.ends_in(factor) || chain.x != x) continue;
      // A number for each row, also after a broadcast.
      ir::Shape rows = graph.tensor(x).shape;
      rows[rows.rank() - 1] = 1;
      if (graph.tensor(factor).shape != rows) continue;
      std::size_t last = i;
      int weight = -1;
      if (const int next = rewriting.only_reader(product.outputs[0]); next >= 0) {
        const ir::Node& scaled = graph.nodes[uz(next)];
        for (const int input : scaled.inputs) {
          if (Chain::binary(&scaled, BinaryOp::kMul) != nullptr && scaled.epilogue.empty() &&
              input != product.outputs[0] &&
              is_weight(graph.tensor(input), graph.tensor(x).shape)) {
            weight = input;
            last = uz(next);
          }
        }
      }
      chain.parts.push_back(i);
      rewriting.replace(last, ops::rms_norm(graph.nodes[last], x, chain.epsilon, weight),
                        chain.parts);
      break;
    }
  }
  rewriting.finish();
}

}  // namespace clgpu::passes
