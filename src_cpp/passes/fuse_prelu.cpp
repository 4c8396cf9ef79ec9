#include <cstring>

#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "passes/float_constants.hpp"
#include "passes/only_reader.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "fuse_prelu";

bool is_prelu(const ir::Node& node) {
  const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
  return binary != nullptr && binary->op == ops::BinaryOp::kPrelu && node.inputs.size() == 2;
}

class Fuser {
 public:
  explicit Fuser(ir::Graph& graph)
      : graph_(graph),
        readers_(ir::readers_of(graph)),
        is_output_(ir::output_mask(graph)),
        removed_(graph.nodes.size(), false) {}

  void run() {
    std::vector<int> writers = ir::writers_of(graph_);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ir::Node& prelu = graph_.nodes[i];
      if (!is_prelu(prelu) || graph_.tensor(prelu.outputs[0]).is_quantized()) continue;
      const int writer = writers[uz(prelu.inputs[0])];
      const std::string problem = writer < 0 ? "no node of the partition computes its input"
                                             : problem_of(graph_.nodes[uz(writer)], prelu);
      if (!problem.empty()) {
        ir::declined(graph_, kPass, prelu.tflite_index, problem);
        continue;
      }
      fuse(graph_.nodes[uz(writer)], prelu);
      writers[uz(prelu.outputs[0])] = writer;
      removed_[i] = true;
    }
    ir::remove_nodes(graph_, removed_);
  }

 private:
  // Whether all slopes are one number.
  static bool are_alike(const ir::Tensor& slopes) {
    const float first = element_of(*slopes.constant, 0);
    const auto count = static_cast<std::size_t>(slopes.shape.elements());
    for (std::size_t i = 1; i < count; ++i) {
      if (element_of(*slopes.constant, i) != first) return false;
    }
    return true;
  }

  // Why a PRELU cannot move into the node that writes its input; empty if it can.
  std::string problem_of(const ir::Node& node, const ir::Node& prelu) const {
    const int result = prelu.inputs[0];
    const ir::Tensor &slopes = graph_.tensor(prelu.inputs[1]), &values = graph_.tensor(result);
    if (!node.kind->has_epilogue || node.outputs[0] != result)
      return "the node before it has no activation of its own";
    if (!node.epilogue.empty()) return "the node before it has an activation already";
    if (!prelu.epilogue.empty()) return "it has an activation of its own";
    if (std::string why = problem_of_use(result, readers_, is_output_); !why.empty()) return why;
    if (values.dtype != DType::kF32) return "its input is not float32";
    if (node.predicate != prelu.predicate || node.predicate_element != prelu.predicate_element)
      return "it runs under another condition than the node before it";
    if (const std::string problem = problem_of_floats(slopes); !problem.empty())
      return "of its slopes: " + problem;
    // Broadcast to more axes, or to more channels, the result would have another shape.
    const std::int64_t count = slopes.shape.elements();
    if (slopes.shape.rank() > values.shape.rank() ||
        (count > 1 && (count != slopes.shape.back(0) || count != values.shape.back(0))))
      return "it has other slopes than one for all, or one for each channel";
    if (are_alike(slopes)) return {};
    if (node.kind->slopes < 0) return "the kernels of the node before it have no slopes";
    const int weights = ir::input_of(node, node.kind->weights.slot);
    const bool fixed = weights < 0 || graph_.tensor(weights).is_constant();
    if (!fixed) return "the weights of the node before it are computed";
    return {};
  }

  void fuse(ir::Node& node, const ir::Node& prelu) {
    const ir::Tensor slopes = graph_.tensor(prelu.inputs[1]);
    if (are_alike(slopes)) {
      node.epilogue = {ir::Activation::kLeakyRelu, element_of(*slopes.constant, 0)};
    } else {
      node.epilogue.activation = ir::Activation::kPrelu;
      ir::set_input(node, node.kind->slopes, add_row(slopes));
    }
    node.outputs[0] = prelu.outputs[0];
    ir::applied(graph_, kPass, prelu.tflite_index, node.tflite_index);
  }

  // The same numbers without the axes of size 1 in front, as biases have them.
  int add_row(ir::Tensor slopes) {
    slopes.shape = ir::Shape({static_cast<int>(slopes.shape.elements())});
    slopes.model_rank = 1;
    slopes.tflite_id = -1;
    graph_.tensors.push_back(std::move(slopes));
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  ir::Graph& graph_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> is_output_, removed_;
};

}  // namespace

void fuse_prelu(ir::Graph& graph) { Fuser(graph).run(); }

}  // namespace clgpu::passes
