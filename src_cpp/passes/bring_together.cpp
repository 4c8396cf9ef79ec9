#include <algorithm>

#include "base/index.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "bring_together";
constexpr std::size_t kReach = 64;              // nodes, that a node passes at most
constexpr std::int64_t kMostBytes = 256 << 10;  // of its result: it lives longer now

/// Moves nodes of one kind, which do not depend on each other, next to the first of them.
class Mover {
 public:
  explicit Mover(ir::Graph& graph) : graph_(graph), written_(graph.tensors.size(), -1) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) write(i);
  }

  void run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (may_move(graph_.nodes[i])) i = gather(i);
    }
  }

 private:
  bool may_move(const ir::Node& node) const {
    // What is a result of the graph is no member of a bundle, and may share memory with an input.
    const std::vector<int>& results = graph_.outputs;
    const bool is_result = std::any_of(node.outputs.begin(), node.outputs.end(), [&](int id) {
      return graph_.tensor(id).carried < 0 &&
             std::find(results.begin(), results.end(), id) != results.end();
    });
    if (!node.kind->bundled || is_result) return false;
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](int id) {
      return graph_.tensor(id).storage_bytes() <= kMostBytes || is_updated(node, id);
    });
  }

  /// Whether a result may lie in the memory of a carried input: it does not grow.
  bool is_updated(const ir::Node& node, int result) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int id) {
      return id >= 0 && graph_.tensor(id).carried >= 0 &&
             graph_.tensor(id).shape == graph_.tensor(result).shape;
    });
  }

  /// Brings others to the node at `first`; returns the place of the last of them.
  std::size_t gather(std::size_t first) {
    std::size_t last = first;
    const std::size_t end = std::min(graph_.nodes.size(), first + kReach);
    for (std::size_t i = first + 1; i < end; ++i) {
      const ir::Node& node = graph_.nodes[i];
      if (node.kind != graph_.nodes[first].kind || !may_move(node)) continue;
      std::vector<std::size_t> views;  // between them, that it reads
      if (!is_known(node, first, views) || is_read_between(node, last + 1, i)) continue;
      if (i > last + 1) {
        ir::applied(graph_, kPass, node.tflite_index, -1,
                    "it follows node " + std::to_string(graph_.nodes[last].tflite_index));
      }
      std::sort(views.begin(), views.end());
      for (const std::size_t view : views) {
        move(view, first++);
        ++last;
      }
      move(i, ++last);
    }
    return last;
  }

  /// Whether what a node reads is known before the node at `first`, or a view of that.
  bool is_known(const ir::Node& node, std::size_t first, std::vector<std::size_t>& views) const {
    std::vector<int> reads = node.inputs;
    reads.push_back(node.predicate);
    return std::all_of(reads.begin(), reads.end(), [&](int id) {
      if (id < 0 || written_[uz(id)] < static_cast<int>(first)) return true;
      const std::size_t writer = uz(written_[uz(id)]);
      const ir::Node& view = graph_.nodes[writer];
      if (writer == first || !view.kind->is_view) return false;
      if (std::find(views.begin(), views.end(), writer) != views.end()) return true;
      views.push_back(writer);
      return is_known(view, first, views);
    });
  }

  /// Whether nodes that it passes read an input of the graph that it may change in place.
  bool is_read_between(const ir::Node& node, std::size_t begin, std::size_t end) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int id) {
      if (id < 0 || graph_.tensor(id).carried < 0) return false;
      return std::any_of(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                         graph_.nodes.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](const ir::Node& other) {
                           const std::vector<int>& reads = other.inputs;
                           return std::find(reads.begin(), reads.end(), id) != reads.end();
                         });
    });
  }

  void move(std::size_t from, std::size_t to) {
    const auto at = [&](std::size_t i) {
      return graph_.nodes.begin() + static_cast<std::ptrdiff_t>(i);
    };
    std::rotate(at(to), at(from), at(from) + 1);
    for (std::size_t i = to; i <= from; ++i) write(i);
  }

  void write(std::size_t index) {
    for (const int id : graph_.nodes[index].outputs) {
      if (id >= 0) written_[uz(id)] = static_cast<int>(index);
    }
  }

  ir::Graph& graph_;
  std::vector<int> written_;  // by tensor: the place of the node that writes it
};

}  // namespace

void bring_together(ir::Graph& graph) { Mover(graph).run(); }

}  // namespace clgpu::passes
