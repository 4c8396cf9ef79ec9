#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/index.hpp"
#include "ops/families/control_flow.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "inline_branches";

// Of a graph. The host starts the launches of both graphs in each inference: with many, it is
// faster to wait for the condition.
constexpr std::size_t kMostNodes = 32;

// Why the host has to run a branch; empty if it does not.
std::string problem_of(const ir::Node& branch) {
  for (const auto& graph : branch.graphs) {
    if (graph->nodes.size() > kMostNodes)
      return "a graph has " + std::to_string(graph->nodes.size()) + " nodes; at most " +
             std::to_string(kMostNodes) + " are started without need";
    for (const ir::Node& node : graph->nodes) {
      if (!node.graphs.empty()) return "a graph has the node " + node.op + ", which runs graphs";
      // A node has one predicate, and its expert's is worth more.
      if (ops::family_of(node).selects)
        return "a graph has the node " + node.op + ", which may choose experts of its own";
    }
  }
  return {};
}

// Makes the graphs of branches part of the graph around them.
class Inliner {
 public:
  explicit Inliner(ir::Graph& graph) : graph_(graph) {
    for (std::size_t id = 0; id < graph.tensors.size(); ++id) note_constant(static_cast<int>(id));
  }

  void add(ir::Node node) { nodes_.push_back(std::move(node)); }

  void add_branch(const ir::Node& branch) {
    const std::vector<int> first = add_graph(*branch.graphs[0], branch);
    const std::vector<int> second = add_graph(*branch.graphs[1], branch);
    for (std::size_t i = 0; i < branch.outputs.size(); ++i) {
      ir::Node choice =
          ops::choice_of(branch.inputs[0], first.at(i), second.at(i), branch.outputs[i]);
      choice.op = branch.op;
      choice.tflite_index = branch.tflite_index;
      add(std::move(choice));
    }
  }

  void finish() { graph_.nodes = std::move(nodes_); }

 private:
  using Key = std::pair<int, const ir::Constant*>;

  void note_constant(int id) {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (tensor.is_constant()) constants_.try_emplace({tensor.tflite_id, tensor.constant.get()}, id);
  }

  // The tensor for one of a graph that none of its inputs stands for.
  int add_tensor(ir::Tensor tensor) {
    if (tensor.is_constant()) {
      const auto known = constants_.find({tensor.tflite_id, tensor.constant.get()});
      if (known != constants_.end()) return known->second;
    }
    tensor.carried = -1;
    graph_.tensors.push_back(std::move(tensor));
    const int id = static_cast<int>(graph_.tensors.size()) - 1;
    note_constant(id);
    return id;
  }

  // Returns the tensors with the results of the branch.
  std::vector<int> add_graph(const ir::Graph& inner, const ir::Node& branch) {
    std::map<int, int> id_of;
    for (const int id : inner.inputs)
      id_of[id] = branch.inputs.at(uz(inner.tensor(id).carried) + 1);
    const auto intern = [&](int id) {
      if (id < 0) return -1;
      const auto [entry, is_new] = id_of.try_emplace(id, -1);
      if (is_new) entry->second = add_tensor(inner.tensor(id));
      return entry->second;
    };
    for (ir::Node node : inner.nodes) {
      // Only a graph of its own needs the copy.
      if (ops::is_state(node)) {
        id_of[node.outputs[0]] = intern(node.inputs[0]);
        continue;
      }
      for (int& id : node.inputs) id = intern(id);
      for (int& id : node.outputs) id = intern(id);
      add(std::move(node));
    }
    const int values = static_cast<int>(branch.inputs.size()) - 1;
    std::vector<int> results(branch.outputs.size(), -1);
    for (const int id : inner.outputs) {
      const int number = inner.tensor(id).carried - values;
      if (number >= 0) results.at(uz(number)) = intern(id);
    }
    return results;
  }

  ir::Graph& graph_;
  std::vector<ir::Node> nodes_;
  std::map<Key, int> constants_;
};

}  // namespace

void inline_branches(ir::Graph& graph, Experts experts) {
  const auto is_branch = [](const ir::Node& node) { return node.kind->runs == ir::Runs::kBranch; };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_branch)) return;
  if (experts == Experts::kDense) return ir::skipped(graph, kPass, "the option experts is dense");
  Inliner inliner(graph);
  for (ir::Node& node : graph.nodes) {
    if (!is_branch(node)) {
      inliner.add(std::move(node));
      continue;
    }
    if (const std::string problem = problem_of(node); !problem.empty()) {
      ir::declined(graph, kPass, node.tflite_index, problem);
      inliner.add(std::move(node));
      continue;
    }
    ir::applied(graph, kPass, node.tflite_index, -1,
                "nodes choose between the results of its graphs");
    inliner.add_branch(node);
  }
  inliner.finish();
}

}  // namespace clgpu::passes
