// [a, b] + [c, d] = [a + c, b + d]: then nothing needs the sum, or its operands, as a whole.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "passes/concatenations.hpp"
#include "passes/row_schedule.hpp"

namespace clgpu::passes {
namespace {

class AdditionSplitter {
 public:
  AdditionSplitter(ir::Graph& graph, std::int64_t most) : graph_(graph), most_(most) {}

  void run() {
    const std::vector<ir::Node> nodes = std::exchange(graph_.nodes, {});
    // In order, so that a sum whose operands are sums of parts is split, too.
    for (const ir::Node& node : nodes) {
      if (is_large_sum(node) && same_parts(node.inputs[0], node.inputs[1])) {
        split(node);
      } else {
        graph_.nodes.push_back(node);
      }
      note_parts();
    }
    remove_unread();
  }

 private:
  bool is_large(int id) const { return graph_.tensor(id).storage_bytes() > most_; }

  bool is_large_sum(const ir::Node& node) const {
    const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
    return binary != nullptr && binary->op == ops::BinaryOp::kAdd && node.inputs.size() == 2 &&
           graph_.tensor(node.outputs[0]).dtype == DType::kF32 && is_large(node.outputs[0]);
  }

  bool same_parts(int a, int b) const {
    const auto left = parts_.find(a), right = parts_.find(b);
    if (left == parts_.end() || right == parts_.end()) return false;
    return std::equal(
        left->second.begin(), left->second.end(), right->second.begin(), right->second.end(),
        [&](int x, int y) { return graph_.tensor(x).shape == graph_.tensor(y).shape; });
  }

  void split(const ir::Node& sum) {
    const std::vector<int> a = parts_.at(sum.inputs[0]), b = parts_.at(sum.inputs[1]);
    ir::Node joined = graph_.nodes[uz(joins_.at(sum.inputs[0]))];
    joined.tflite_index = sum.tflite_index;
    joined.outputs = sum.outputs;
    joined.inputs.clear();
    for (std::size_t i = 0; i < a.size(); ++i) {
      ir::Tensor part = tensor_like(graph_.tensor(sum.outputs[0]), "");
      part.shape = graph_.tensor(a[i]).shape;
      graph_.tensors.push_back(std::move(part));
      ir::Node node = sum;
      node.inputs = {a[i], b[i]};
      node.outputs = {static_cast<int>(graph_.tensors.size()) - 1};
      joined.inputs.push_back(node.outputs[0]);
      graph_.nodes.push_back(std::move(node));
    }
    graph_.nodes.push_back(std::move(joined));
    ir::applied(graph_, "split_additions", sum.tflite_index, sum.tflite_index);
  }

  // Of the last node, if it is a large concatenation: its inputs, or theirs.
  void note_parts() {
    const int n = static_cast<int>(graph_.nodes.size()) - 1;
    const ir::Node& node = graph_.nodes[uz(n)];
    if (!joins_channels(graph_, n) || !is_large(node.outputs[0])) return;
    std::vector<int> parts;
    for (const int id : node.inputs) {
      const auto inner = parts_.find(id);
      if (inner == parts_.end()) {
        parts.push_back(id);
      } else {
        parts.insert(parts.end(), inner->second.begin(), inner->second.end());
      }
    }
    parts_[node.outputs[0]] = std::move(parts);
    joins_[node.outputs[0]] = n;
  }

  // Operands of sums that were split may have no readers left.
  void remove_unread() {
    const auto readers = ir::readers_of(graph_);
    const std::vector<bool> is_output = ir::output_mask(graph_);
    std::vector<bool> removed(graph_.nodes.size(), false);
    // Backwards: the readers of an inner concatenation go first.
    std::map<int, int, std::greater<>> joined;  // node -> its result
    for (const auto& [id, node] : joins_) joined[node] = id;
    for (const auto& [node, id] : joined) {
      removed[uz(node)] =
          !is_output[uz(id)] && std::all_of(readers[uz(id)].begin(), readers[uz(id)].end(),
                                            [&](int reader) { return removed[uz(reader)]; });
    }
    ir::remove_nodes(graph_, removed);
  }

  ir::Graph& graph_;
  const std::int64_t most_;
  std::map<int, std::vector<int>> parts_;  // of large concatenations
  std::map<int, int> joins_;               // their nodes
};

}  // namespace

void split_additions(ir::Graph& graph, std::int64_t most) { AdditionSplitter(graph, most).run(); }

}  // namespace clgpu::passes
