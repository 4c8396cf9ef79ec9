#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/unary.hpp"
#include "passes/pass.hpp"
#include "passes/rewriting.hpp"

namespace clgpu::passes {

void fuse_swish(ir::Graph& graph) {
  Rewriting rewriting(graph, "fuse_swish");
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    const ir::Node& product = graph.nodes[i];
    const auto* binary = dynamic_cast<const ops::BinaryAttrs*>(product.attrs.get());
    if (binary == nullptr || binary->op != ops::BinaryOp::kMul || !product.epilogue.empty() ||
        product.inputs.size() != 2 || graph.tensor(product.outputs[0]).dtype != DType::kF32)
      continue;
    for (const int slot : {0, 1}) {
      const int x = product.inputs[uz(slot)];
      const int sigmoid = rewriting.writer(product.inputs[uz(1 - slot)]);
      if (sigmoid < 0 || graph.nodes[uz(sigmoid)].inputs[0] != x) continue;
      const auto activation = ops::as_epilogue(graph.nodes[uz(sigmoid)]);
      if (!activation || activation->activation != ir::Activation::kSigmoid) continue;
      rewriting.replace(i, ops::activation_of(product, x, ir::Activation::kSwish), {uz(sigmoid)});
      break;
    }
  }
  rewriting.finish();
}

}  // namespace clgpu::passes
