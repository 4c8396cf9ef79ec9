#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/fully_connected.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "fuse_residual";

bool is_addition_of_two(const ir::Node& node) {
  const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
  return binary != nullptr && binary->op == ops::BinaryOp::kAdd && node.inputs.size() == 2 &&
         !binary->shifts;
}

// For integers, the sum starts from the value that the node would have stored, so the result is the
// same.
void add_in_tail(const ir::Graph& graph, const ir::Node& sum, int result, ir::Node& fused) {
  ir::Tail tail = fused.tail != nullptr ? *fused.tail : ir::Tail{};
  fused.epilogue.residual_after = !tail.table.empty();
  if (fused.tail == nullptr) tail.own = graph.tensor(result).quantization;
  tail.sum = graph.tensor(sum.outputs[0]).quantization;
  tail.sum_activation = sum.epilogue.activation;
  fused.tail = std::make_shared<const ir::Tail>(std::move(tail));
}

// How many axes of size 1 `shape` has in front of those of `last`; 0 if it has others.
int axes_in_front(const ir::Shape& last, const ir::Shape& shape) {
  const int ones = shape.rank() - last.rank();
  if (ones <= 0) return 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != (axis < ones ? 1 : last[axis - ones])) return 0;
  }
  return ones;
}

}  // namespace

void fuse_residual(ir::Graph& graph) {
  const auto readers = ir::readers_of(graph);
  const auto is_output = ir::output_mask(graph);
  std::vector<int> writers = ir::writers_of(graph);
  std::vector<bool> removed(graph.nodes.size(), false);

  // Why the node that writes `sum` cannot add `other` to it; empty if it can.
  const auto problem = [&](int sum, int other, const ir::Epilogue& behind) -> std::string {
    const ir::Tensor &result = graph.tensor(sum), &residual = graph.tensor(other);
    if (writers[uz(sum)] < 0) return "no node of the partition computes it";
    if (is_output[uz(sum)]) return "it is a result of the partition";
    if (readers[uz(sum)].size() != 1) return "other nodes read it";
    const ir::Node& writer = graph.nodes[uz(writers[uz(sum)])];
    const std::string name = writer.op + " (node " + std::to_string(writer.tflite_index) + ")";
    if (writer.kind->residual < 0) return "the kernels of " + name + " add nothing";
    if (ir::input_of(writer, writer.kind->residual) >= 0)
      return name + " adds another tensor already";
    // The activation comes after the addition, so an activation before it cannot stay. For integers
    // it can, as bounds of the value that the residual is added to, and so can slopes if nothing
    // comes after the addition.
    if (!result.is_quantized() && result.dtype != DType::kF32) return "it is not float32";
    const bool stays = writer.epilogue.activation == ir::Activation::kPrelu && behind.empty();
    if (!result.is_quantized() && !writer.epilogue.empty() && !stays)
      return name + " has an activation";
    // The shapes at load time: constants never change with a resize. If another operand does not
    // either, the delegate runs the passes again (Partition::infer_shapes).
    if (residual.is_constant()) return "the other input is a constant";
    if (result.shape != residual.shape &&
        (result.is_quantized() || axes_in_front(result.shape, residual.shape) == 0 ||
         ops::fully_connected::with_ones(writer, 0) == nullptr))
      return "the other input has another shape";
    if (result.shape.rank() == 0) return "it is a scalar";
    return {};
  };

  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    ir::Node& sum = graph.nodes[i];
    if (!is_addition_of_two(sum)) continue;
    const int a = sum.inputs[0], b = sum.inputs[1];
    const std::string problem_of_a = problem(a, b, sum.epilogue);
    const std::string problem_of_b = problem(b, a, sum.epilogue);
    const bool from_a = problem_of_a.empty(), from_b = problem_of_b.empty();
    if (!from_a && !from_b) {
      ir::declined(graph, kPass, sum.tflite_index,
                   "input 0: " + problem_of_a + "; input 1: " + problem_of_b);
      continue;
    }
    // Of two candidates, the later one: the other's result exists by then.
    const bool take_b = from_b && (!from_a || writers[uz(b)] > writers[uz(a)]);
    const int writer = writers[uz(take_b ? b : a)];

    // The node moves to the position of the addition, where both operands have been computed.
    ir::Node fused = std::move(graph.nodes[uz(writer)]);
    removed[uz(writer)] = true;
    ir::set_input(fused, fused.kind->residual, take_b ? a : b);
    if (const int ones =
            axes_in_front(graph.tensor(fused.outputs[0]).shape, graph.tensor(sum.outputs[0]).shape);
        ones > 0) {
      fused.attrs = ops::fully_connected::with_ones(fused, ones);
      ir::rely_on_shapes(graph);
    }
    fused.outputs[0] = sum.outputs[0];
    if (graph.tensor(sum.outputs[0]).is_quantized()) {
      add_in_tail(graph, sum, take_b ? b : a, fused);
    } else if (fused.epilogue.empty()) {
      fused.epilogue = sum.epilogue;
    } else {
      fused.epilogue.residual_after = true;
    }
    ir::applied(graph, kPass, sum.tflite_index, fused.tflite_index);
    sum = std::move(fused);
    writers[uz(sum.outputs[0])] = static_cast<int>(i);
  }
  ir::remove_nodes(graph, removed);
}

}  // namespace clgpu::passes
