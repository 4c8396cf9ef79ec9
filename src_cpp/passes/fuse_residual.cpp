#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

bool is_addition_of_two(const ir::Node& node) {
  const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
  return binary != nullptr && binary->op == ops::BinaryOp::kAdd && node.inputs.size() == 2 &&
         !binary->shifts;
}

// Of integers: the sum is made of what the node would have stored, so the result is the same.
void add_in_tail(const ir::Graph& graph, const ir::Node& sum, int result, ir::Node& fused) {
  ir::Tail tail = fused.tail != nullptr ? *fused.tail : ir::Tail{};
  fused.epilogue.residual_after = !tail.table.empty();
  if (fused.tail == nullptr) tail.own = graph.tensor(result).quantization;
  tail.sum = graph.tensor(sum.outputs[0]).quantization;
  tail.sum_activation = sum.epilogue.activation;
  fused.tail = std::make_shared<const ir::Tail>(std::move(tail));
}

}  // namespace

void fuse_residual(ir::Graph& graph) {
  const auto readers = ir::readers_of(graph);
  const auto is_output = ir::output_mask(graph);
  std::vector<int> writers = ir::writers_of(graph);
  std::vector<bool> removed(graph.nodes.size(), false);

  // Whether the node that writes `sum` may add `other` to it.
  const auto can_take = [&](int sum, int other) {
    const ir::Tensor &result = graph.tensor(sum), &residual = graph.tensor(other);
    if (writers[uz(sum)] < 0 || is_output[uz(sum)] || readers[uz(sum)].size() != 1) return false;
    const ir::Node& writer = graph.nodes[uz(writers[uz(sum)])];
    if (writer.kind->residual < 0) return false;
    if (static_cast<int>(writer.inputs.size()) > writer.kind->residual) return false;
    // The activation comes after the addition: one before it cannot stay. Of integers it can, as
    // bounds of what is added to.
    if (!result.is_quantized() && (result.dtype != DType::kF32 || !writer.epilogue.empty()))
      return false;
    // The shapes of load time: constants never follow a resize. Where another operand does not
    // either, the delegate runs the passes again (Partition::infer_shapes).
    return !residual.is_constant() && result.shape == residual.shape && result.shape.rank() > 0;
  };

  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    ir::Node& sum = graph.nodes[i];
    if (!is_addition_of_two(sum)) continue;
    const int a = sum.inputs[0], b = sum.inputs[1];
    const bool from_a = can_take(a, b), from_b = can_take(b, a);
    if (!from_a && !from_b) continue;
    // Of two, the later one: the other's result is there by then anyway.
    const bool take_b = from_b && (!from_a || writers[uz(b)] > writers[uz(a)]);
    const int writer = writers[uz(take_b ? b : a)];

    // The node moves to the addition's place, where both operands have been computed.
    ir::Node fused = std::move(graph.nodes[uz(writer)]);
    removed[uz(writer)] = true;
    fused.inputs.resize(uz(fused.kind->residual), -1);
    fused.inputs.push_back(take_b ? a : b);
    fused.outputs[0] = sum.outputs[0];
    if (graph.tensor(sum.outputs[0]).is_quantized()) {
      add_in_tail(graph, sum, take_b ? b : a, fused);
    } else {
      fused.epilogue = sum.epilogue;
    }
    graph.fused[sum.tflite_index] = fused.tflite_index;
    sum = std::move(fused);
    writers[uz(sum.outputs[0])] = static_cast<int>(i);
  }
  ir::remove_nodes(graph, removed);
}

}  // namespace clgpu::passes
