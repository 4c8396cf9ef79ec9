#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/index.hpp"
#include "ops/families/control_flow.hpp"
#include "ops/families/logical.hpp"
#include "ops/family.hpp"
#include "ops/shared/binary_op.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "skip_experts";
constexpr std::int64_t kMostElements = 4096;  // of a gate: one work-item looks through them

/// Share of the experts that nobody picks, below which predicates cost more on tensor cores than
/// they save: with 16 samples, 4 of 16 experts and 1 % left, a decoder's layer took 1.19 times as
/// long with predicates as without on an H200.
constexpr double kLeastUnpicked = 0.05;

/// The share of the elements that are in no row of `selecting`'s results, if rows pick at random.
double unpicked(const ir::Graph& graph, const ir::Node& selecting) {
  const ir::Shape& picked = graph.tensor(selecting.outputs[0]).shape;
  const double of = graph.tensor(selecting.inputs[0]).shape.back(0), chosen = picked.back(0);
  if (chosen <= 0 || of <= 0) return 1;
  return std::pow(std::max(0.0, 1 - chosen / of), static_cast<double>(picked.elements()) / chosen);
}

std::string percent(double share) {
  std::ostringstream text;
  text << std::setprecision(2) << 100 * share;
  return text.str();
}

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
  /// Nodes that have a predicate keep it, and what they read is needed for its value, too.
  explicit Search(const ir::Graph& graph)
      : graph_(graph),
        readers_(ir::readers_of(graph)),
        writers_(ir::writers_of(graph)),
        is_output_(ir::output_mask(graph)) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].predicate >= 0) settled_.insert(n);
    }
  }

  /// The node with the largest elements of another tensor of which a tensor is computed, without a
  /// product, behind which zeros would be lost; null if there is none.
  const ir::Node* selecting(int tensor) const {
    std::set<int> seen{tensor};
    for (std::vector<int> open{tensor}; !open.empty();) {
      const int writer = writers_[uz(open.back())];
      open.pop_back();
      if (writer < 0) continue;
      const ir::Node& node = graph_.nodes[uz(writer)];
      if (ops::family_of(node).selects) return &node;
      if (ops::family_of(node).work_kind != ops::WorkKind::kOther || !node.graphs.empty()) continue;
      for (const int id : node.inputs) {
        if (id >= 0 && seen.insert(id).second) open.push_back(id);
      }
    }
    return nullptr;
  }

  /// Whether the node had a predicate before.
  bool is_settled(std::size_t node) const { return settled_.count(node) > 0; }

  /// A reader, and what it reads.
  using Ends = std::set<std::pair<int, int>>;

  /// The nodes whose results are needed for these inputs of nodes alone, in order. Not those that
  /// the gate is computed by, which may be of use within the expert, too.
  std::vector<std::size_t> only_for(const Ends& ends, int gate) const {
    const std::set<int> of_gate = writers_behind(gate);
    std::set<int> members;
    std::vector<std::size_t> found;
    const auto needed_elsewhere = [&](int id) {
      const std::vector<int>& readers = readers_[uz(id)];
      return is_output_[uz(id)] || std::any_of(readers.begin(), readers.end(), [&](int n) {
               return members.count(n) == 0 && ends.count({n, id}) == 0;
             });
    };
    for (std::size_t n = ends.empty() ? 0 : uz(ends.rbegin()->first); n-- > 0;) {
      const ir::Node& node = graph_.nodes[n];
      const bool is_read = std::any_of(node.outputs.begin(), node.outputs.end(),
                                       [&](int id) { return !readers_[uz(id)].empty(); });
      if (!is_read || of_gate.count(static_cast<int>(n)) > 0 || settled_.count(n) > 0 ||
          std::any_of(node.outputs.begin(), node.outputs.end(), needed_elsewhere))
        continue;
      members.insert(static_cast<int>(n));
      found.push_back(n);
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
  std::set<std::size_t> settled_;
};

// The choices between the results of two graphs, by condition.
std::map<int, std::vector<std::size_t>> choices_of(const ir::Graph& graph) {
  std::map<int, std::vector<std::size_t>> choices;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (ops::is_choice(graph.nodes[n])) choices[graph.nodes[n].inputs[0]].push_back(n);
  }
  return choices;
}

int add_negation(ir::Graph& graph, int condition, int tflite_index) {
  ir::Tensor tensor;
  tensor.name = "not " + graph.tensor(condition).name;
  tensor.dtype = tensor.storage = DType::kBool;
  tensor.shape = graph.tensor(condition).shape;
  tensor.model_rank = graph.tensor(condition).model_rank;
  graph.tensors.push_back(std::move(tensor));
  const int result = static_cast<int>(graph.tensors.size()) - 1;
  graph.nodes.push_back(ops::negation_of(condition, result));
  graph.nodes.back().tflite_index = tflite_index;
  return result;
}

// Nodes that only one graph of a branch needs get its condition, or the opposite. Returns whether
// there are any.
bool skip_branches(ir::Graph& graph) {
  bool changed = false;
  for (const auto& [condition, choices] : choices_of(graph)) {
    const int index = graph.nodes[choices.front()].tflite_index;
    std::size_t counts[] = {0, 0};
    for (const int slot : {1, 2}) {
      const Search search(graph);  // with the predicates so far
      Search::Ends ends;
      for (const std::size_t n : choices) {
        const std::vector<int>& inputs = graph.nodes[n].inputs;
        if (inputs[1] != inputs[2]) ends.insert({static_cast<int>(n), inputs[uz(slot)]});
      }
      const std::vector<std::size_t> members = search.only_for(ends, condition);
      if (members.empty()) continue;
      const int predicate = slot == 1 ? condition : add_negation(graph, condition, index);
      for (const std::size_t n : members) graph.nodes[n].predicate = predicate;
      counts[slot - 1] = members.size();
    }
    if (counts[0] + counts[1] == 0) continue;
    ir::applied(graph, kPass, index, -1,
                std::to_string(counts[0]) + " nodes run only if the condition is true, " +
                    std::to_string(counts[1]) + " if it is false");
    changed = true;
  }
  return changed;
}

}  // namespace

void skip_experts(ir::Graph& graph, Experts experts, const DeviceInfo& device) {
  bool changed = skip_branches(graph);
  const Search search(graph);
  // From the end: of a mixture within an expert, the outer gate decides.
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    if (!is_multiplication(graph, graph.nodes[n]) || search.is_settled(n)) continue;
    const std::vector<int> inputs = graph.nodes[n].inputs;
    for (const int slot : {0, 1}) {
      const int result = inputs[uz(slot)], gate = inputs[uz(1 - slot)];
      const ir::Node* const selecting = search.selecting(gate);
      if (selecting == nullptr || search.selecting(result) != nullptr) continue;
      if (experts == Experts::kDense)
        return ir::skipped(graph, kPass, "the option experts is dense");
      if (const std::int64_t elements = graph.tensor(gate).shape.elements();
          elements > kMostElements) {
        ir::declined(graph, kPass, graph.nodes[n].tflite_index,
                     "the gate has " + std::to_string(elements) + " elements; at most " +
                         std::to_string(kMostElements) + " are looked through");
        continue;
      }
      if (device.mma_f16 || device.mma_tf32) {
        ir::rely_on_shapes(graph);
        if (const double rest = unpicked(graph, *selecting); rest < kLeastUnpicked) {
          ir::declined(graph, kPass, graph.nodes[n].tflite_index,
                       "of samples that pick at random, " + percent(rest) +
                           " % of the experts would be left, and tensor cores compute all of them "
                           "sooner than gates are looked at");
          continue;
        }
      }
      std::vector<std::size_t> expert;
      if (result != gate) expert = search.only_for({{static_cast<int>(n), result}}, gate);
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
