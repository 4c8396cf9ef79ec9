#include "base/index.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void remove_dead(ir::Graph& graph) {
  std::vector<bool> needed = ir::output_mask(graph);
  std::vector<ir::Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    bool any = false;
    for (const int id : node->outputs) any = any || needed[uz(id)];
    if (!any) {
      if (ir::merged_into(graph, node->tflite_index) < 0)
        ir::applied(graph, "remove_dead", node->tflite_index, -1, "nothing reads its results");
      continue;
    }
    for (const int id : node->inputs) {
      if (id >= 0) needed[uz(id)] = true;
    }
    if (node->predicate >= 0) needed[uz(node->predicate)] = true;
    kept.push_back(std::move(*node));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (!needed[i]) graph.tensors[i].constant = nullptr;
  }
}

}  // namespace clgpu::passes
