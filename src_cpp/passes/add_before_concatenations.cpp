#include <algorithm>

#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "passes/concatenations.hpp"

namespace clgpu::passes {
namespace {

// Whether a concatenation reads the tensor or a view of it, and could have it in place.
bool has_slot(const ir::Graph& graph, const Links& links, const Sums& sums, int id) {
  while (links.readers[uz(id)].size() == 1) {
    const int reader = links.readers[uz(id)][0];
    const ir::Node& node = graph.nodes[uz(reader)];
    if (concatenation_of(node) != nullptr) {
      const auto input = std::find(node.inputs.begin(), node.inputs.end(), id);
      return slot_of(graph, links, sums, reader, static_cast<int>(input - node.inputs.begin()))
          .has_value();
    }
    if (!node.kind->is_view) return false;
    id = node.outputs[0];
  }
  return false;
}

// The nodes that could add `addend` to the parts of `joined`; empty if one of them cannot.
std::vector<int> takers(const ir::Graph& graph, const Links& links, const Sums& sums,
                        const ir::Node& sum, int joined, int addend) {
  const ir::Tensor &whole = graph.tensor(joined), &other = graph.tensor(addend);
  const int writer = links.writers[uz(joined)];
  if (writer < 0 || concatenation_of(graph.nodes[uz(writer)]) == nullptr) return {};
  if (links.readers[uz(joined)].size() != 1 || links.is_output[uz(joined)]) return {};
  if (whole.dtype != DType::kF32 || other.is_constant() || whole.shape != other.shape) return {};
  std::vector<int> nodes;
  for (std::size_t i = 0; i < graph.nodes[uz(writer)].inputs.size(); ++i) {
    const auto slot = slot_of(graph, links, sums, writer, static_cast<int>(i));
    if (!slot) return {};
    // Kernels of integers, whose results are converted, have no addend of floats.
    if (std::any_of(slot->tensors.begin(), slot->tensors.end(),
                    [&](int id) { return graph.tensor(id).is_converted(); }))
      return {};
    const ir::Node& part = graph.nodes[uz(slot->writer)];
    const int free = part.kind->residual;
    if (free < 0 || ir::input_of(part, free) >= 0) return {};
    // One activation, before the addition or after it.
    if (!part.epilogue.empty() && !sum.epilogue.empty()) return {};
    if (links.writers[uz(addend)] > slot->writer) return {};  // not computed by then
    nodes.push_back(slot->writer);
  }
  return nodes;
}

// Moves one addition; false if there is none left to move.
bool move_one(ir::Graph& graph, Sums& sums) {
  const Links links(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node sum = graph.nodes[n];
    const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(sum.attrs.get());
    if (binary == nullptr || binary->op != ops::BinaryOp::kAdd || sum.inputs.size() != 2) continue;
    // What writes the parts could not convert the sum.
    const auto is_converted = [&](int id) { return graph.tensor(id).is_converted(); };
    if (is_converted(sum.outputs[0]) || is_converted(sum.inputs[0]) || is_converted(sum.inputs[1]))
      continue;
    // Written to memory of its own, it costs less than a copy.
    if (has_slot(graph, links, sums, sum.outputs[0])) continue;
    for (std::size_t k = 0; k < 2; ++k) {
      const int joined = sum.inputs[k], addend = sum.inputs[1 - k];
      const std::vector<int> nodes = takers(graph, links, sums, sum, joined, addend);
      if (nodes.empty()) continue;
      for (const int taker : nodes) {
        ir::Node& node = graph.nodes[uz(taker)];
        ir::set_input(node, node.kind->residual, addend);
        if (node.epilogue.empty()) {
          node.epilogue = sum.epilogue;
        } else {
          node.epilogue.residual_after = true;
        }
      }
      ir::applied(graph, "add_before_concatenations", sum.tflite_index,
                  graph.nodes[uz(nodes.back())].tflite_index);
      graph.nodes[uz(links.writers[uz(joined)])].outputs[0] = sum.outputs[0];
      graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n));
      sums.insert(sum.outputs[0]);
      return true;
    }
  }
  return false;
}

}  // namespace

Sums add_before_concatenations(ir::Graph& graph) {
  Sums sums;
  while (move_one(graph, sums)) {
  }
  return sums;
}

}  // namespace clgpu::passes
