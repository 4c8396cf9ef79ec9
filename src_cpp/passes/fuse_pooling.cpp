#include "ops/families/pooled.hpp"
#include "passes/pass.hpp"
#include "passes/rewriting.hpp"

namespace clgpu::passes {

void fuse_pooling(ir::Graph& graph, Pooling pooling, const DeviceInfo& device) {
  constexpr const char* kPass = "fuse_pooling";
  if (pooling == Pooling::kNever) {
    return ir::skipped(graph, kPass,
                       "nodes are computed in parts, or the option engines names a kernel of one");
  }
  Rewriting rewriting(graph, kPass);
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    const ir::Node& reader = graph.nodes[i];
    const int image = reader.inputs.empty() ? -1 : reader.inputs[0];
    if (rewriting.writer(image) < 0) continue;
    const auto first = uz(rewriting.writer(image));
    auto node = ops::pooled(graph, graph.nodes[first], reader);
    // Looking for readers passes over all nodes.
    if (!node || rewriting.only_reader(image) < 0) continue;
    if (pooling == Pooling::kWherePays && !ops::pooled_pays(graph, *node, device)) {
      ir::declined(graph, kPass, reader.tflite_index,
                   "two launches are expected to be faster on this device");
      continue;
    }
    rewriting.replace(i, std::move(*node), {first});
  }
  rewriting.finish();
}

}  // namespace clgpu::passes
