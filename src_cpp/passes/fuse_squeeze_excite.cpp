#include "base/index.hpp"
#include "ops/families/binary.hpp"
#include "ops/families/squeeze_excite.hpp"
#include "passes/hard_sigmoid.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr const char* kPass = "fuse_squeeze_excite";

// The nodes from a mean to the gate, followed backwards.
class Chain {
 public:
  Chain(const ir::Graph& graph, const Rewriting& rewriting)
      : graph_(graph), rewriting_(rewriting) {}

  ops::GateParts parts;
  std::vector<std::size_t> nodes;

  // Whether the tensor is a gate, of which the last node of the chain is the only reader.
  bool ends_in(int gate) {
    if (const auto hard = hard_sigmoid(graph_, rewriting_, gate)) {
      // From the first to the last: each has no other reader.
      for (const std::size_t part : hard->parts) {
        if (rewriting_.only_reader(graph_.nodes[part].outputs[0]) < 0) return false;
      }
      nodes = hard->parts;
      gate = hard->x;
      parts.hard = true;
    }
    parts.second = only_for(gate);
    if (parts.second == nullptr || !ops::multiplies_pixels(graph_, *parts.second)) return false;
    if (parts.hard && !parts.second->epilogue.empty()) return false;
    parts.mean = only_for(parts.second->inputs[0]);
    if (parts.mean != nullptr && ops::multiplies_pixels(graph_, *parts.mean)) {
      parts.first = parts.mean;
      parts.mean = only_for(parts.first->inputs[0]);
    }
    if (parts.mean == nullptr || !ops::averages_pixels(graph_, *parts.mean)) return false;
    const std::size_t count = nodes.size();
    parts.addend = only_for(parts.mean->inputs[0]);
    if (parts.addend != nullptr &&
        (parts.addend->outputs[0] != parts.mean->inputs[0] || !adds(*parts.addend)))
      parts.addend = nullptr;
    if (parts.addend == nullptr) nodes.resize(count);
    return true;
  }

 private:
  // The node that writes a tensor, perhaps as another shape, that nobody else reads; null if there
  // is none.
  const ir::Node* only_for(int tensor) {
    while (rewriting_.writer(tensor) >= 0 && rewriting_.only_reader(tensor) >= 0) {
      const auto at = uz(rewriting_.writer(tensor));
      nodes.push_back(at);
      const ir::Node& node = graph_.nodes[at];
      if (node.outputs.size() != 1) return nullptr;
      if (!node.kind->is_view) return &node;
      tensor = node.inputs[0];
    }
    return nullptr;
  }

  bool adds(const ir::Node& node) const {
    const auto* attrs = dynamic_cast<const ops::BinaryAttrs*>(node.attrs.get());
    if (attrs == nullptr || attrs->op != ops::BinaryOp::kAdd || node.inputs.size() != 2 ||
        !node.epilogue.empty())
      return false;
    for (const int input : node.inputs) {
      const ir::Tensor& tensor = graph_.tensor(input);
      if (tensor.dtype != DType::kF32 || tensor.is_constant() ||
          tensor.shape != graph_.tensor(node.outputs[0]).shape)
        return false;
    }
    return true;
  }

  const ir::Graph& graph_;
  const Rewriting& rewriting_;
};

// A gate has one number for each image and channel.
bool is_gate_of(const ir::Shape& gate, const ir::Shape& image) {
  if (image.rank() != 4 || gate.elements() != std::int64_t{image[0]} * image[3] ||
      gate.back(0) != image[3])
    return false;
  return image[0] == 1 || (gate.rank() == 4 && gate[0] == image[0]);
}

}  // namespace

void fuse_squeeze_excite(ir::Graph& graph, bool gates, const DeviceInfo& device) {
  if (!gates) {
    return ir::skipped(
        graph, kPass, "with a memory budget, or as the option engines names a kernel of its parts");
  }
  Rewriting rewriting(graph, kPass);
  for (std::size_t i = 0; i < rewriting.size(); ++i) {
    const ir::Node& product = graph.nodes[i];
    const auto* attrs = dynamic_cast<const ops::BinaryAttrs*>(product.attrs.get());
    if (attrs == nullptr || attrs->op != ops::BinaryOp::kMul || product.inputs.size() != 2 ||
        attrs->quantized)
      continue;
    for (const int slot : {0, 1}) {
      const int image = product.inputs[uz(slot)], gate = product.inputs[uz(1 - slot)];
      Chain chain(graph, rewriting);
      if (!is_gate_of(graph.tensor(gate).shape, graph.tensor(image).shape) || !chain.ends_in(gate))
        continue;
      chain.parts.product = &product;
      chain.parts.image = image;
      auto fused = ops::squeeze_excite(graph, chain.parts);
      if (!fused) continue;
      ir::rely_on_shapes(graph);  // a pool covers all of the image at these sizes only
      if (!ops::squeeze_excite_pays(graph, *fused, device)) {
        ir::declined(graph, kPass, product.tflite_index,
                     "a launch for each node is expected to be faster on this device");
        break;
      }
      rewriting.replace(i, std::move(*fused), chain.nodes);
      break;
    }
  }
  rewriting.finish();
}

}  // namespace clgpu::passes
