#include "base/index.hpp"
#include "ops/families/unary.hpp"
#include "ops/quantized/lookup.hpp"
#include "passes/only_reader.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "fuse_lookup";

// Whether a node computes integers and may have a table: kernels that add a residual also look up
// results.
bool may_have_table(const ir::Graph& graph, const ir::Node& node) {
  return node.kind->residual >= 0 && node.outputs.size() == 1 &&
         graph.tensor(node.outputs[0]).is_quantized() &&
         size_of(graph.tensor(node.outputs[0]).dtype) == 1;
}

}  // namespace

void fuse_lookup(ir::Graph& graph) {
  const auto readers = ir::readers_of(graph);
  const auto is_output = ir::output_mask(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    ir::Node& node = graph.nodes[i];
    if (removed[i] || !may_have_table(graph, node) || readers[uz(node.outputs[0])].empty())
      continue;
    const int result = node.outputs[0];
    const auto next = uz(readers[uz(result)][0]);
    const auto function = ops::table_function(graph.nodes[next]);
    if (!function || removed[next]) continue;
    const ir::Tensor& from = graph.tensor(result);
    const ir::Tensor& to = graph.tensor(graph.nodes[next].outputs[0]);
    const int index = graph.nodes[next].tflite_index;
    const std::string problem = [&]() -> std::string {
      if (std::string why = problem_of_use(result, readers, is_output); !why.empty()) return why;
      if (node.tail != nullptr && !node.tail->table.empty())
        return "the node before it has a table already";
      if (size_of(to.dtype) != 1 || !to.is_quantized())
        return "its result is not of quantised 8-bit integers";
      return {};
    }();
    if (!problem.empty()) {
      ir::declined(graph, kPass, index, problem);
      continue;
    }
    ir::Tail tail = node.tail != nullptr ? *node.tail : ir::Tail{};
    if (node.tail == nullptr) tail.own = from.quantization;
    tail.looked_up = to.quantization;
    for (const std::int16_t value : ops::table_of(*function, from, to))
      tail.table.push_back(static_cast<std::uint8_t>(value));
    node.tail = std::make_shared<const ir::Tail>(std::move(tail));
    node.outputs[0] = graph.nodes[next].outputs[0];
    ir::applied(graph, kPass, index, node.tflite_index);
    removed[next] = true;
  }
  ir::remove_nodes(graph, removed);
}

}  // namespace clgpu::passes
