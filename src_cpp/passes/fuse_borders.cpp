// QUANTIZE moves into the kernel before it, DEQUANTIZE into those behind it or the one before it:
// the tensor between them has another type in memory than in arithmetic, and what is left is a
// view.
#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "ops/families/dequantize.hpp"
#include "ops/families/quantize.hpp"
#include "ops/family.hpp"
#include "ops/shared/conversions.hpp"
#include "passes/only_reader.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "fuse_borders";

class Fuser {
 public:
  explicit Fuser(ir::Graph& graph)
      : graph_(graph),
        readers_(ir::readers_of(graph)),
        writers_(ir::writers_of(graph)),
        is_output_(ir::output_mask(graph)) {}

  void run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      ir::Node& node = graph_.nodes[i];
      const bool rounds = ops::is_quantize_of_floats(graph_, node);
      if (!rounds && !ops::is_dequantize_of_integers(node)) continue;
      std::string problem = problem_of(node);
      if (problem.empty() && !rounds && problem_of_readers(node).empty()) {
        read_integers(node);
        continue;
      }
      if (problem.empty()) problem = problem_of_writer(node);
      if (!problem.empty()) {
        ir::declined(graph_, kPass, node.tflite_index, problem);
        continue;
      }
      write_converted(node, rounds);
    }
  }

 private:
  static bool stays(const ir::Tensor& tensor) { return tensor.state >= 0 || tensor.carried >= 0; }

  // Why a border stays a launch, whatever is around it.
  std::string problem_of(const ir::Node& node) const {
    const ir::Tensor &from = graph_.tensor(node.inputs[0]), &to = graph_.tensor(node.outputs[0]);
    const ir::Tensor& integers = is_float(from.dtype) ? to : from;
    if (from.is_constant()) return "its input is a constant";
    if (node.predicate >= 0) return "a condition decides whether it runs";
    if (stays(from) || stays(to)) return "its input or its result stays on the device";
    if (integers.quantization->per_axis()) return "it has a scale for each index of an axis";
    return {};
  }

  // Why the node before it cannot convert its result.
  std::string problem_of_writer(const ir::Node& node) const {
    const int id = node.inputs[0];
    const int writer = writers_[uz(id)];
    if (writer < 0) return "its input is one of the partition";
    if (std::string why = problem_of_use(id, readers_, is_output_); !why.empty()) return why;
    const ir::Node& before = graph_.nodes[uz(writer)];
    if (before.predicate >= 0) return "a condition decides whether the node before it runs";
    if (before.kind->is_view ||
        !ops::can_convert_result(graph_, before, graph_.tensor(node.outputs[0]).storage))
      return "no kernel of the node before it converts its results";
    return {};
  }

  // Why the nodes behind it cannot read integers as floats.
  std::string problem_of_readers(const ir::Node& node) const {
    const int id = node.outputs[0];
    const DType storage = graph_.tensor(node.inputs[0]).storage;
    if (is_output_[uz(id)]) return "its result is one of the partition";
    if (readers_[uz(id)].empty()) return "nothing reads its result";
    for (const int reader : readers_[uz(id)]) {
      const ir::Node& next = graph_.nodes[uz(reader)];
      const auto slot = std::find(next.inputs.begin(), next.inputs.end(), id);
      if (next.kind->is_view || next.predicate >= 0 || slot == next.inputs.end() ||
          std::count(next.inputs.begin(), next.inputs.end(), id) != 1 ||
          !ops::can_convert_input(graph_, next, static_cast<int>(slot - next.inputs.begin()),
                                  storage))
        return "no kernel of a node behind it reads integers as floats";
    }
    return {};
  }

  // The passes before put some of these nodes beside one of the model, with its index.
  bool is_own(const ir::Node& node) const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const ir::Node& other) {
      return &other != &node && other.tflite_index == node.tflite_index;
    });
  }

  void note(const ir::Node& node, int other, const std::string& what) {
    if (is_own(node)) {
      ir::applied(graph_, kPass, other, -1, "its kernel " + what);
    } else {
      ir::applied(graph_, kPass, node.tflite_index, other, "the kernel " + what);
    }
  }

  void read_integers(ir::Node& node) {
    const ir::Tensor& from = graph_.tensor(node.inputs[0]);
    ir::Tensor& to = graph_.tensor(node.outputs[0]);
    to.storage = from.storage;
    to.quantization = from.quantization;
    node.kind = &ops::kFusedDequantizeFamily;
    for (const int reader : readers_[uz(node.outputs[0])]) {
      note(node, graph_.nodes[uz(reader)].tflite_index,
           "reads " + std::string(name_of(from.storage)) + " as floats");
    }
  }

  void write_converted(ir::Node& node, bool rounds) {
    ir::Tensor& from = graph_.tensor(node.inputs[0]);
    const ir::Tensor& to = graph_.tensor(node.outputs[0]);
    from.storage = to.storage;
    if (rounds) from.quantization = to.quantization;
    node.kind = rounds ? &ops::kFusedQuantizeFamily : &ops::kFusedDequantizeFamily;
    note(node, graph_.nodes[uz(writers_[uz(node.inputs[0])])].tflite_index,
         "writes its results as " + std::string(name_of(to.storage)));
  }

  ir::Graph& graph_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> writers_;
  std::vector<bool> is_output_;
};

}  // namespace

void fuse_borders(ir::Graph& graph, bool fuses) {
  if (!fuses)
    return ir::skipped(graph, kPass,
                       "with a memory budget, 'reuse' or an engine of these nodes they stay apart");
  Fuser(graph).run();
}

}  // namespace clgpu::passes
