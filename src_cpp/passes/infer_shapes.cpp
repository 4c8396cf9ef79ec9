#include <algorithm>
#include <memory>

#include "ops/family.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

// Why no kernel can take a tensor of this shape; empty if one can. Kernels index with 32-bit
// integers.
std::string size_problem(const ir::Shape& shape) {
  const std::int64_t elements = shape.elements();
  if (elements > 0 && elements <= INT32_MAX) return {};
  return shape.str() + " has " + std::to_string(elements) + " elements; supported: 1 to 2147483647";
}

// Why a node cannot read a tensor; empty if it can.
std::string input_problem(const ir::Tensor& tensor) {
  if (tensor.is_constant()) {
    // Axes and shapes of scalars are lists without elements. Weights without elements would be
    // products of depth 0, and plans divide by the depth.
    const bool may_be_list = tensor.dtype == DType::kI32 || tensor.dtype == DType::kI64;
    return may_be_list ? std::string() : size_problem(tensor.shape);
  }
  if (tensor.shape.rank() != tensor.model_rank) {
    return tensor.shape.str() + " has " + std::to_string(tensor.shape.rank()) +
           " axes; the model was loaded with " + std::to_string(tensor.model_rank);
  }
  return size_problem(tensor.shape);
}

// Memory and plans are made once for all rounds, and for both branches.
void check_results(const ir::Node& node) {
  const bool is_loop = node.kind->runs == ir::Runs::kLoop;
  const ir::Graph& graph = *node.graphs.back();
  for (const int id : graph.outputs) {
    const ir::Tensor& now = graph.tensor(id);
    if (now.carried < 0) continue;
    const auto same = [&](const ir::Graph& other, const std::vector<int>& ids) {
      return std::all_of(ids.begin(), ids.end(), [&](int before) {
        const ir::Tensor& tensor = other.tensor(before);
        return tensor.carried != now.carried || tensor.shape == now.shape;
      });
    };
    if (is_loop && !same(graph, graph.inputs))
      throw ShapeError("state " + std::to_string(now.carried) + " changes its shape to " +
                       now.shape.str() + " in a round");
    if (!is_loop && !same(*node.graphs.front(), node.graphs.front()->outputs))
      throw ShapeError("its graphs give a result different shapes; one is " + now.shape.str());
  }
}

// Shapes of the graphs that a node runs, from those of its inputs.
void infer_graphs(const ir::Graph& graph, ir::Node& node) {
  std::vector<std::shared_ptr<const ir::Graph>> inferred;
  for (const auto& old : node.graphs) {
    auto inner = std::make_shared<ir::Graph>(*old);
    take_inputs(graph, node, *inner);
    infer_shapes(*inner);
    inferred.push_back(std::move(inner));
  }
  node.graphs = std::move(inferred);
  check_results(node);
}

}  // namespace

void take_inputs(const ir::Graph& graph, const ir::Node& node, ir::Graph& inner) {
  const int first = node.kind->runs == ir::Runs::kBranch ? 1 : 0;
  for (const int id : inner.inputs) {
    ir::Tensor& tensor = inner.tensor(id);
    tensor.shape = graph.tensor(node.inputs.at(uz(tensor.carried + first))).shape;
  }
}

void infer_shapes(ir::Graph& graph, ir::Node& node) {
  const std::string where = node.op + " (node " + std::to_string(node.tflite_index) + "): ";
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] < 0) continue;
    const std::string problem = input_problem(graph.tensor(node.inputs[i]));
    if (!problem.empty())
      throw ShapeError(where + "its input " + std::to_string(i) + " " + problem, node.tflite_index);
  }
  ir::Shapes shapes;
  try {
    if (!node.graphs.empty()) infer_graphs(graph, node);
    shapes = ops::family_of(node).infer(ops::NodeContext(graph, node));
  } catch (const ShapeError& error) {
    throw ShapeError(where + error.what(), node.tflite_index);
  }
  CLGPU_CHECK(shapes.size() == node.outputs.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (const std::string problem = size_problem(shapes[i]); !problem.empty()) {
      throw ShapeError(where + "its result " + problem, node.tflite_index);
    }
    graph.tensor(node.outputs[i]).shape = std::move(shapes[i]);
  }
}

void infer_shapes(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) infer_shapes(graph, node);
  // Nodes that read an input may have been removed because nothing needs their results, but it is
  // uploaded all the same.
  for (const int id : graph.inputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (const std::string problem = size_problem(tensor.shape); !problem.empty())
      throw ShapeError("tensor '" + tensor.name + "' " + problem);
  }
}

}  // namespace clgpu::passes
