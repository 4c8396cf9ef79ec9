#include "base/index.hpp"
#include "ops/families/separable_conv2d.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void fuse_separable(ir::Graph& graph, Separable separable, bool halves, const DeviceInfo& device) {
  constexpr const char* kPass = "fuse_separable";
  if (separable == Separable::kNever)
    return ir::skipped(graph, kPass, "the option engines names a kernel of its parts");
  const auto readers = ir::readers_of(graph);
  const auto is_output = ir::output_mask(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  std::vector<int> makers(graph.tensors.size(), -1);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int output : graph.nodes[i].outputs) makers[uz(output)] = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const ir::Node& depthwise = graph.nodes[i];
    if (depthwise.outputs.size() != 1) continue;
    const auto between = static_cast<std::size_t>(depthwise.outputs[0]);
    if (is_output[between] || readers[between].size() != 1) continue;
    ir::Node& pointwise = graph.nodes[uz(readers[between][0])];
    auto node = ops::separable(graph, depthwise, pointwise);
    if (!node) continue;
    if (separable == Separable::kWherePays && !ops::separable_pays(graph, *node, halves, device)) {
      ir::declined(graph, kPass, pointwise.tflite_index,
                   "two launches are expected to be faster on this device");
      continue;
    }
    int first = depthwise.tflite_index;
    const int image = depthwise.inputs[0], maker = makers[uz(image)];
    const bool alone = maker >= 0 && !removed[uz(maker)] && !is_output[uz(image)] &&
                       readers[uz(image)].size() == 1;
    if (alone && separable != Separable::kPairs) {
      auto block = ops::inverted(graph, graph.nodes[uz(maker)], *node);
      const bool wanted = separable == Separable::kBlocks ||
                          (block && halves && ops::inverted_pays(graph, *block, device));
      if (block && wanted) {
        first = graph.nodes[uz(maker)].tflite_index;
        removed[uz(maker)] = true;
        node = std::move(block);
        ir::applied(graph, kPass, depthwise.tflite_index, first);
      }
    }
    ir::applied(graph, kPass, pointwise.tflite_index, first);
    // The depthwise convolution has the same one, as nothing else reads its result.
    node->predicate = pointwise.predicate;
    node->predicate_element = pointwise.predicate_element;
    // At the later position, where a residual has been computed, too.
    pointwise = std::move(*node);
    removed[i] = true;
  }
  ir::remove_nodes(graph, removed);
}

}  // namespace clgpu::passes
