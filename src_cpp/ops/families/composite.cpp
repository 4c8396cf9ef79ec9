// Family of STABLEHLO_COMPOSITE: attention and normalisations, which files name; others run as the
// graphs that define them.
#include "ops/families/composite.hpp"

#include "base/utf8.hpp"
#include "ir/fields.hpp"
#include "ops/families/composite/composite.hpp"
#include "ops/families/instance_norm.hpp"
#include "ops/families/l2_normalization.hpp"
#include "tfl/flexbuffer.hpp"

namespace clgpu::ops {
namespace {

using namespace composite;

constexpr int kComposite = 206;

OrRefusal<CompositeAttrs> attributes_of(const tfl::NodeView& node, const std::string& name,
                                        const Numbers& numbers) {
  if (name == "odml.scaled_dot_product_attention") return import_attention(node, numbers);
  if (name == "odml.rms_norm") return import_row_norm(node, numbers, kRmsNorm);
  if (name == "odml.l2_norm") return import_row_norm(node, numbers, kL2Norm);
  if (name == "odml.group_norm") return import_group_norm(node, numbers);
  return Refusal{Why::kNoKernels, "the composite " + printable(name.c_str())};
}

// Integers, booleans and floats; no bytes at all are an empty map.
OrRefusal<Numbers> numbers_of(const tfl::CompositeParams& params) {
  Numbers numbers;
  if (params.attributes_size == 0) return numbers;
  const auto map = tfl::FlexMap::read(params.attributes, params.attributes_size, "its attributes");
  if (!map) return map.refusal();
  for (const auto& [name, value] : map->entries()) {
    if (const auto number = map->number(name)) numbers[name] = *number;
  }
  return numbers;
}

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const auto* params = node.params<tfl::CompositeParams>();
  CLGPU_REFUSE_IF(params == nullptr || params->name == nullptr, Why::kParameter, "",
                  "the node has no parameters");
  const std::string name = params->name;
  const auto numbers = numbers_of(*params);
  if (!numbers) return numbers.refusal();
  const auto attrs = attributes_of(node, name, *numbers);
  if (!attrs) return attrs.refusal();
  CLGPU_REFUSE_IF(node.output_count() != 1, Why::kOperands, "",
                  "it has several outputs; the operation has 1");
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kF32);
  const auto graph = tfl::read_decomposition(node, params->subgraph_index);
  CLGPU_REFUSE_IF(!graph || !defines(*graph, node, *attrs), Why::kParameter, "the decomposition",
                  "computes something else than " + name + " does with these attributes");
  return Imported{share(*attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  return {node.attrs<CompositeAttrs>().kind == kAttention ? attention_shape(node)
                                                          : norm_shape(node)};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<CompositeAttrs>();
  switch (attrs.kind) {
    case kAttention:
      return attention(node, device);
    case kGroupNorm:
      return instance_norm_candidates(node, device, attrs.epsilon, attrs.groups);
    case kRmsNorm:
      return row_norm_candidates(node, device,
                                 {static_cast<float>(node.input(0).shape.back(0)), attrs.epsilon});
    default:
      return row_norm_candidates(node, device, {1.0F, attrs.epsilon});
  }
}

double flops(const NodeContext& node) {
  if (node.attrs<CompositeAttrs>().kind == kAttention) return attention_flops(node);
  return 5.0 * static_cast<double>(node.output(0).shape.elements());
}

}  // namespace

extern const Family kCompositeFamily;
extern const Family kDecomposedFamily;

ir::Node rms_norm(const ir::Node& last, int x, float epsilon, int weight) {
  CompositeAttrs attrs;
  attrs.kind = kRmsNorm;
  attrs.epsilon = epsilon;
  ir::Node node = last;
  node.kind = &kCompositeFamily;
  node.inputs = {x};
  if (weight >= 0) node.inputs.push_back(weight);
  node.attrs = share(attrs);
  return node;
}

std::optional<float> rms_norm_epsilon(const ir::Node& node) {
  if (node.kind != &kCompositeFamily) return std::nullopt;
  const auto& attrs = static_cast<const CompositeAttrs&>(*node.attrs);
  return attrs.kind == kRmsNorm ? std::optional(attrs.epsilon) : std::nullopt;
}

ir::Node attention(const ir::Node& last, int q, int k, int v, int mask, float scale, int result) {
  CompositeAttrs attrs;
  attrs.kind = kAttention;
  attrs.scale = scale;
  ir::Node node = last;
  node.kind = &kCompositeFamily;
  node.inputs = {q, k, v};
  if (mask >= 0) node.inputs.push_back(mask);
  node.outputs = {result};
  node.attrs = share(attrs);
  return node;
}

const Family kCompositeFamily = [] {
  Family family;
  family.name = "composite";
  family.attrs = ir::attrs_type<CompositeAttrs>();
  family.builtins = {{kComposite, "STABLEHLO_COMPOSITE", 1, kAnyNumber, kAnyNumber, -1}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;  // unknown names are refused as such, whatever the types
  family.runs_graphs = true;
  family.flops = flops;
  family.stock_passes = 5;
  family.most_axes = kMostAxes;  // of the graphs that others run as
  family.variants = {&kDecomposedFamily};
  return family;
}();

// What the family refuses is the graph that defines it (delegate/claim/inline.cpp); these nodes are
// views of its results.
const Family kDecomposedFamily = [] {
  Family family;
  family.name = "composite";
  family.variant = "decomposed";
  family.infer = infer_same_as_input;
  family.is_view = true;
  family.runs_graphs = true;
  family.allows_quantized = true;
  family.most_axes = kMostAxes;
  return family;
}();

}  // namespace clgpu::ops
