#include <algorithm>
#include <numeric>

#include "base/index.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "order_levels";
constexpr std::int64_t kMostBytes = 8 << 20;  // of a result: all of a level take memory at once

/// Whether nothing but the tensors that nodes read decides when they may run, and all are small.
bool may_order(const ir::Graph& graph) {
  const auto plain = [&](const ir::Node& node) {
    return node.graphs.empty() && node.predicate < 0 &&
           std::all_of(
               node.outputs.begin(), node.outputs.end(),
               [&](int id) { return id < 0 || graph.tensor(id).storage_bytes() <= kMostBytes; });
  };
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), plain) &&
         std::all_of(graph.tensors.begin(), graph.tensors.end(),
                     [](const ir::Tensor& tensor) { return tensor.carried < 0; });
}

/// Of each node: how many nodes that are no views run one after the other before it at least.
std::vector<int> levels_of(const ir::Graph& graph) {
  std::vector<int> known(graph.tensors.size(), 0), levels;  // from which level on a tensor is known
  for (const ir::Node& node : graph.nodes) {
    int level = 0;
    for (const int id : node.inputs) level = std::max(level, id < 0 ? 0 : known[uz(id)]);
    levels.push_back(level);
    for (const int id : node.outputs) {
      if (id >= 0) known[uz(id)] = level + (node.kind->is_view ? 0 : 1);
    }
  }
  return levels;
}

}  // namespace

void order_levels(ir::Graph& graph, bool chains, const DeviceInfo& device) {
  if (!chains || !device.is(GpuFamily::kNvidia) || !may_order(graph)) return;
  const std::vector<int> levels = levels_of(graph);
  std::vector<std::size_t> order(levels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return levels[a] < levels[b]; });
  std::vector<ir::Node> nodes;
  std::vector<bool> placed(levels.size());
  std::size_t next = 0;  // the first in the old order that is not placed
  int last = -1;         // TFLite's index of the last one that is no view
  for (const std::size_t i : order) {
    while (next < placed.size() && placed[next]) ++next;
    ir::Node& node = graph.nodes[i];
    if (!node.kind->is_view) {
      // The first of a level is the first that is not placed.
      if (i != next) {
        ir::applied(graph, kPass, node.tflite_index, -1,
                    "it runs beside node " + std::to_string(last));
      }
      last = node.tflite_index;
    }
    placed[i] = true;
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace clgpu::passes
