#include "base/index.hpp"
#include "ops/families/unary.hpp"
#include "passes/only_reader.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "fuse_activation";

class Fuser {
 public:
  explicit Fuser(ir::Graph& graph)
      : graph_(graph),
        readers_(ir::readers_of(graph)),
        is_output_(ir::output_mask(graph)),
        removed_(graph.nodes.size(), false) {}

  void run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      ir::Node& node = graph_.nodes[i];
      if (removed_[i] || !node.kind->has_epilogue || node.outputs.size() != 1) continue;
      // Another activation may follow one that has moved: its step gives the reason why it stays.
      while (take(node)) {
      }
    }
    ir::remove_nodes(graph_, removed_);
  }

 private:
  // Why no activation of a node's result can move into the node; empty if one can.
  std::string problem_of(const ir::Node& node) const {
    const int result = node.outputs[0];
    if (!node.epilogue.empty()) return "the node before it has an activation already";
    if (std::string why = problem_of_use(result, readers_, is_output_); !why.empty()) return why;
    if (graph_.tensor(result).dtype != DType::kF32) return "its input is not float32";
    return {};
  }

  // Moves the activation of a node's result into the node; false if there is none, or it stays.
  bool take(ir::Node& node) {
    const std::string problem = problem_of(node);
    for (const int reader : readers_[uz(node.outputs[0])]) {
      const ir::Node& next = graph_.nodes[uz(reader)];
      const auto epilogue = ops::as_epilogue(next);
      if (!epilogue || removed_[uz(reader)]) continue;
      if (!problem.empty()) {
        ir::declined(graph_, kPass, next.tflite_index, problem);
        continue;
      }
      node.epilogue = *epilogue;
      node.outputs[0] = next.outputs[0];
      ir::applied(graph_, kPass, next.tflite_index, node.tflite_index);
      removed_[uz(reader)] = true;
      return true;
    }
    return false;
  }

  ir::Graph& graph_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> is_output_, removed_;
};

}  // namespace

void fuse_activation(ir::Graph& graph) { Fuser(graph).run(); }

}  // namespace clgpu::passes
