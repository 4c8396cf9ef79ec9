#include <memory>

#include "ir/verify.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::kFp16:
      return "fp16";
    case Precision::kTf32:
      return "tf32";
    case Precision::kMixed:
      return "mixed";
    case Precision::kFp32:
      break;
  }
  return "fp32";
}

const std::vector<Pass>& pipeline() {
  using G = ir::Graph;
  using O = PipelineOptions;
  using D = DeviceInfo;
  static const std::vector<Pass> passes = {
      {"inline_branches",
       [](G& graph, const O& o, const D&) {
         if (!o.inlines_branches)
           return ir::skipped(graph, "inline_branches",
                              "with a memory budget, only the graph that runs takes memory");
         inline_branches(graph, o.experts);
       }},
      {"allow_tf32",
       [](G& graph, const O& o, const D&) {
         if (o.precision == Precision::kMixed && o.plan != nullptr) allow_tf32(graph, *o.plan);
       }},
      {"keep_half_constants", [](G& graph, const O&, const D&) { keep_half_constants(graph); }},
      {"quantize_activations",
       [](G& graph, const O& o, const D&) {
         if (o.precision == Precision::kMixed && o.plan != nullptr)
           quantize_activations(graph, *o.plan);
       }},
      {"round_weights",
       [](G& graph, const O& o, const D&) {
         if (o.precision == Precision::kMixed && o.plan != nullptr) round_weights(graph, *o.plan);
       }},
      {"fuse_instance_norm", [](G& graph, const O&, const D&) { fuse_instance_norm(graph); }},
      {"fuse_layer_norm", [](G& graph, const O& o, const D&) { fuse_layer_norm(graph, o.norms); }},
      {"fuse_rms_norm", [](G& graph, const O&, const D&) { fuse_rms_norm(graph); }},
      {"fuse_rotation", [](G& graph, const O&, const D&) { fuse_rotation(graph); }},
      {"fuse_attention", [](G& graph, const O&, const D&) { fuse_attention(graph); }},
      {"fuse_swish", [](G& graph, const O&, const D&) { fuse_swish(graph); }},
      {"fuse_activation", [](G& graph, const O&, const D&) { fuse_activation(graph); }},
      {"fuse_squeeze_excite",
       [](G& graph, const O& o, const D& d) { fuse_squeeze_excite(graph, o.gates, d); }},
      {"skip_experts", [](G& graph, const O& o, const D& d) { skip_experts(graph, o.experts, d); }},
      {"gather_experts", [](G& graph, const O& o, const D&) { gather_experts(graph, o.experts); }},
      {"group_experts",
       [](G& graph, const O& o, const D& d) {
         // What a plan of precisions says of a weight was measured with experts by themselves.
         group_experts(graph, o.grouped_experts && o.precision != Precision::kMixed, d);
       }},
      // Before an addition,
      {"fuse_lookup", [](G& graph, const O&, const D&) { fuse_lookup(graph); }},
      {"fuse_prelu", [](G& graph, const O&, const D&) { fuse_prelu(graph); }},
      {"fuse_residual", [](G& graph, const O&, const D&) { fuse_residual(graph); }},
      // and after one.
      {"fuse_lookup", [](G& graph, const O&, const D&) { fuse_lookup(graph); }},
      {"fuse_prelu", [](G& graph, const O&, const D&) { fuse_prelu(graph); }},
      {"dynamic_range",
       [](G& graph, const O& o, const D&) { dynamic_range(graph, o.dynamic_range); }},
      {"quantize_weights",
       [](G& graph, const O& o, const D&) {
         if (o.precision == Precision::kMixed && o.plan != nullptr)
           quantize_weights(graph, *o.plan);
       }},
      // A plan's error was measured with weights that are read as floats, whatever the option says
      // of the model's own.
      {"dynamic_range",
       [](G& graph, const O&, const D&) { dynamic_range(graph, DynamicRange::kDequantize); }},
      {"fuse_pad", [](G& graph, const O&, const D&) { fuse_pad(graph); }},
      {"fuse_separable",
       [](G& graph, const O& o, const D& d) { fuse_separable(graph, o.separable, o.blocks, d); }},
      {"fuse_pooling", [](G& graph, const O& o, const D& d) { fuse_pooling(graph, o.pooling, d); }},
      {"remove_dead", [](G& graph, const O&, const D&) { remove_dead(graph); }},
      {"choose_storage",
       [](G& graph, const O& o, const D&) {
         choose_storage(graph, o.precision, o.half_io, o.half_weights, o.half_carried,
                        o.plan.get());
       }},
      {"fuse_products",
       [](G& graph, const O& o, const D& d) { fuse_products(graph, o.products, d); }},
      {"bring_together", [](G& graph, const O&, const D&) { bring_together(graph); }},
      {"choose_sums",
       [](G& graph, const O& o, const D&) {
         const bool mixed = o.precision == Precision::kMixed;
         const bool all = o.half_sums && (mixed || o.precision == Precision::kFp16);
         choose_sums(graph, all, mixed ? o.plan.get() : nullptr);
       }},
      {"fuse_borders", [](G& graph, const O& o, const D&) { fuse_borders(graph, o.borders); }},
      {"order_levels", [](G& graph, const O& o, const D& d) { order_levels(graph, o.chains, d); }},
  };
  return passes;
}

void run_pipeline(ir::Graph& graph, const PipelineOptions& options, const DeviceInfo& device) {
  // Halves have no more mantissa bits than TF32 numbers.
  graph.allows_half = options.precision == Precision::kFp16;
  graph.allows_tf32 = graph.allows_half || options.precision == Precision::kTf32;
  for (const Pass& pass : pipeline()) pass.run(graph, options, device);
  for (ir::Node& node : graph.nodes) {
    for (auto& old : node.graphs) {
      auto inner = std::make_shared<ir::Graph>(*old);
      PipelineOptions within = options;
      within.half_carried = false;  // states are copied from and to tensors of the graph around it
      run_pipeline(*inner, within, device);
      if (!inner->relies_on.empty()) ir::rely_on_shapes(graph);
      old = std::move(inner);
    }
  }
  ir::verify(graph);
}

}  // namespace clgpu::passes
