#include <algorithm>
#include <set>

#include "base/index.hpp"
#include "ops/family.hpp"
#include "ops/shared/binary_op.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "skip_experts";
constexpr std::int64_t kMostElements = 4096;  // of a gate: one work-item looks through them

bool is_product(const ir::Node& node) {
  return ops::family_of(node).work_kind == ops::WorkKind::kProduct;
}

bool is_multiplication(const ir::Graph& graph, const ir::Node& node) {
  const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
  return binary != nullptr && binary->op == ops::BinaryOp::kMul && node.inputs.size() == 2 &&
         graph.tensor(node.outputs[0]).dtype == DType::kF32;
}

class Search {
 public:
  explicit Search(const ir::Graph& graph)
      : graph_(graph),
        readers_(ir::readers_of(graph)),
        writers_(ir::writers_of(graph)),
        is_output_(ir::output_mask(graph)) {}

  /// Whether a tensor is computed of the largest elements of another one, without a product, behind
  /// which zeros would be lost.
  bool is_selected(int tensor) const {
    std::set<int> seen{tensor};
    for (std::vector<int> open{tensor}; !open.empty();) {
      const int writer = writers_[uz(open.back())];
      open.pop_back();
      if (writer < 0) continue;
      const ir::Node& node = graph_.nodes[uz(writer)];
      if (ops::family_of(node).selects) return true;
      if (ops::family_of(node).work_kind != ops::WorkKind::kOther || !node.graphs.empty()) continue;
      for (const int id : node.inputs) {
        if (id >= 0 && seen.insert(id).second) open.push_back(id);
      }
    }
    return false;
  }

  /// The nodes whose results are needed for an input of a node alone, in order. Not those that the
  /// gate is computed by, which may be of use within the expert, too.
  std::vector<std::size_t> only_for(std::size_t reader, int tensor, int gate) const {
    const std::set<int> of_gate = writers_behind(gate);
    std::set<int> members{static_cast<int>(reader)};
    const auto needed_elsewhere = [&](int id) {
      const std::vector<int>& readers = readers_[uz(id)];
      return is_output_[uz(id)] || std::any_of(readers.begin(), readers.end(),
                                               [&](int n) { return members.count(n) == 0; });
    };
    const std::vector<int>& inputs = graph_.nodes[reader].inputs;
    if (std::count(inputs.begin(), inputs.end(), tensor) != 1) return {};
    std::vector<std::size_t> found;
    const int last = writers_[uz(tensor)];
    for (int n = last; n >= 0; --n) {
      const ir::Node& node = graph_.nodes[uz(n)];
      const auto leads_there = [&](int id) {
        return id == tensor || std::any_of(readers_[uz(id)].begin(), readers_[uz(id)].end(),
                                           [&](int r) { return r != static_cast<int>(reader); });
      };
      const bool alone = std::none_of(node.outputs.begin(), node.outputs.end(), needed_elsewhere) &&
                         std::any_of(node.outputs.begin(), node.outputs.end(), leads_there);
      if (!alone || of_gate.count(n) > 0 || (members.size() == 1 && n != last)) continue;
      members.insert(n);
      found.push_back(uz(n));
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  /// The nodes that a tensor is computed by.
  std::set<int> writers_behind(int tensor) const {
    std::set<int> found;
    for (std::vector<int> open{tensor}; !open.empty();) {
      const int writer = writers_[uz(open.back())];
      open.pop_back();
      if (writer < 0 || !found.insert(writer).second) continue;
      for (const int id : graph_.nodes[uz(writer)].inputs) {
        if (id >= 0) open.push_back(id);
      }
    }
    return found;
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<int>> readers_;
  const std::vector<int> writers_;
  const std::vector<bool> is_output_;
};

}  // namespace

void skip_experts(ir::Graph& graph, Experts experts) {
  const Search search(graph);
  bool changed = false;
  // From the end: of a mixture within an expert, the outer gate decides.
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    if (!is_multiplication(graph, graph.nodes[n])) continue;
    const std::vector<int> inputs = graph.nodes[n].inputs;
    for (const int slot : {0, 1}) {
      const int result = inputs[uz(slot)], gate = inputs[uz(1 - slot)];
      if (!search.is_selected(gate) || search.is_selected(result)) continue;
      if (experts == Experts::kDense)
        return ir::skipped(graph, kPass, "the option experts is dense");
      if (const std::int64_t elements = graph.tensor(gate).shape.elements();
          elements > kMostElements) {
        ir::declined(graph, kPass, graph.nodes[n].tflite_index,
                     "the gate has " + std::to_string(elements) + " elements; at most " +
                         std::to_string(kMostElements) + " are looked through");
        continue;
      }
      const std::vector<std::size_t> expert = search.only_for(n, result, gate);
      const auto product = [&](std::size_t i) { return is_product(graph.nodes[i]); };
      if (std::none_of(expert.begin(), expert.end(), product)) {
        ir::declined(graph, kPass, graph.nodes[n].tflite_index,
                     "no convolution or matrix product is computed for it alone");
        continue;
      }
      int members = 0;
      for (const std::size_t i : expert) {
        if (graph.nodes[i].predicate >= 0) continue;
        graph.nodes[i].predicate = gate;
        ++members;
      }
      ir::Node& product_node = graph.nodes[n];
      ops::BinaryAttrs attrs;
      attrs.op = ops::BinaryOp::kGated;
      product_node.attrs = std::make_shared<const ops::BinaryAttrs>(attrs);
      product_node.inputs = {result, gate};
      ir::applied(graph, kPass, product_node.tflite_index, -1,
                  std::to_string(members) + " nodes run only if an element of the gate is not 0");
      changed = true;
    }
  }
  if (changed) ir::sort_nodes(graph);
}

}  // namespace clgpu::passes
