#include "ops/family.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void infer_shapes(ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    const std::string where = node.op + " (node " + std::to_string(node.tflite_index) + "): ";
    ir::Shapes shapes;
    try {
      shapes = ops::family_of(node).infer(ops::NodeContext(graph, node));
    } catch (const ShapeError& error) {
      throw ShapeError(where + error.what(), node.tflite_index);
    }
    CLGPU_CHECK(shapes.size() == node.outputs.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::int64_t elements = shapes[i].elements();
      // Kernels index with 32-bit integers.
      if (elements <= 0 || elements > INT32_MAX) {
        throw ShapeError(where + "its result " + shapes[i].str() + " has " + std::to_string(elements) +
                         " elements; supported: 1 to 2147483647", node.tflite_index);
      }
      graph.tensor(node.outputs[i]).shape = std::move(shapes[i]);
    }
  }
}

}  // namespace clgpu::passes
