#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/unary.hpp"
#include "passes/hard_sigmoid.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

bool multiplies(const ir::Node& node) {
  const auto* attrs = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
  return attrs != nullptr && attrs->op == ops::BinaryOp::kMul && node.inputs.size() == 2;
}

// x * sigmoid(x).
std::optional<Spelled> swish(const ir::Graph& graph, const Rewriting& rewriting,
                             const ir::Node& product) {
  for (const int slot : {0, 1}) {
    const int x = product.inputs[uz(slot)];
    const int sigmoid = rewriting.writer(product.inputs[uz(1 - slot)]);
    if (sigmoid < 0 || graph.nodes[uz(sigmoid)].inputs[0] != x) continue;
    const auto activation = ops::as_epilogue(graph.nodes[uz(sigmoid)]);
    if (activation && activation->activation == ir::Activation::kSigmoid)
      return Spelled{x, {uz(sigmoid)}};
  }
  return std::nullopt;
}

// x * (relu6(x + 3) / 6), or (x * relu6(x + 3)) / 6.
std::optional<Spelled> hard_swish(const ir::Graph& graph, const Rewriting& rewriting,
                                  const ir::Node& last) {
  if (multiplies(last)) {
    for (const int slot : {0, 1}) {
      auto found = hard_sigmoid(graph, rewriting, last.inputs[uz(1 - slot)]);
      if (found && found->x == last.inputs[uz(slot)]) return found;
    }
  }
  const int six = sixth_of(graph, last);
  const int at = six < 0 ? -1 : rewriting.writer(six);
  if (at < 0 || !multiplies(graph.nodes[uz(at)]) || !graph.nodes[uz(at)].epilogue.empty())
    return std::nullopt;
  for (const int slot : {0, 1}) {
    auto found = clipped_sum(graph, rewriting, graph.nodes[uz(at)].inputs[uz(1 - slot)]);
    if (!found || found->x != graph.nodes[uz(at)].inputs[uz(slot)]) continue;
    found->parts.push_back(uz(at));
    return found;
  }
  return std::nullopt;
}

}  // namespace

void fuse_swish(ir::Graph& graph) {
  Rewriting rewriting(graph, "fuse_swish");
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    const ir::Node& last = graph.nodes[i];
    if (rewriting.node(i) == nullptr || last.outputs.size() != 1 || !last.epilogue.empty() ||
        graph.tensor(last.outputs[0]).dtype != DType::kF32)
      continue;
    if (multiplies(last)) {
      if (auto found = swish(graph, rewriting, last)) {
        rewriting.replace(i, ops::activation_of(last, found->x, ir::Activation::kSwish),
                          found->parts);
        continue;
      }
    }
    if (auto found = hard_swish(graph, rewriting, last)) {
      rewriting.replace(i, ops::activation_of(last, found->x, ir::Activation::kHardSwish),
                        found->parts);
    }
  }
  rewriting.finish();
}

}  // namespace clgpu::passes
