#include "passes/hard_sigmoid.hpp"

#include <cmath>

#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/unary.hpp"

namespace clgpu::passes {
namespace {

bool is(const ir::Node& node, ops::BinaryOp op) {
  const auto* attrs = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
  return attrs != nullptr && attrs->op == op && !attrs->quantized && node.inputs.size() == 2;
}

}  // namespace

std::optional<Spelled> clipped_sum(const ir::Graph& graph, const Rewriting& rewriting, int tensor) {
  int at = rewriting.writer(tensor);
  if (at < 0) return std::nullopt;
  std::vector<std::size_t> parts{uz(at)};
  ir::Activation activation = graph.nodes[uz(at)].epilogue.activation;
  if (ops::as_epilogue(graph.nodes[uz(at)])) {
    at = rewriting.writer(graph.nodes[uz(at)].inputs[0]);
    if (at < 0 || !graph.nodes[uz(at)].epilogue.empty()) return std::nullopt;
    parts.push_back(uz(at));
  }
  const ir::Node& sum = graph.nodes[uz(at)];
  if (activation != ir::Activation::kRelu6 || !is(sum, ops::BinaryOp::kAdd)) return std::nullopt;
  for (const int slot : {0, 1}) {
    const int x = sum.inputs[uz(1 - slot)];
    // A number of a higher rank would give x more axes.
    if (number_of(graph.tensor(sum.inputs[uz(slot)])) == 3.0F &&
        graph.tensor(x).shape == graph.tensor(sum.outputs[0]).shape)
      return Spelled{x, std::move(parts)};
  }
  return std::nullopt;
}

int sixth_of(const ir::Graph& graph, const ir::Node& node) {
  const bool divides = is(node, ops::BinaryOp::kDiv);
  if ((!divides && !is(node, ops::BinaryOp::kMul)) || !node.epilogue.empty()) return -1;
  for (const int slot : {1, 0}) {
    if (slot == 0 && divides) continue;
    const int x = node.inputs[uz(1 - slot)];
    const auto number = number_of(graph.tensor(node.inputs[uz(slot)]));
    if (!number || graph.tensor(x).shape != graph.tensor(node.outputs[0]).shape) continue;
    // Of the rounding of one division.
    if (divides ? *number == 6.0F : std::abs(*number * 6.0F - 1.0F) <= 1e-6F) return x;
  }
  return -1;
}

std::optional<Spelled> hard_sigmoid(const ir::Graph& graph, const Rewriting& rewriting,
                                    int tensor) {
  const int at = rewriting.writer(tensor);
  if (at < 0) return std::nullopt;
  const int six = sixth_of(graph, graph.nodes[uz(at)]);
  auto found = six < 0 ? std::nullopt : clipped_sum(graph, rewriting, six);
  if (found) found->parts.push_back(uz(at));
  return found;
}

}  // namespace clgpu::passes
