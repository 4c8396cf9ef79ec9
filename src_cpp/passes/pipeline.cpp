#include "passes/pass.hpp"

namespace clgpu::passes {

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::kFp16:
      return "fp16";
    case Precision::kTf32:
      return "tf32";
    case Precision::kFp32:
      break;
  }
  return "fp32";
}

void run_pipeline(ir::Graph& graph, const PipelineOptions& options, const DeviceInfo& device) {
  // A half has no more mantissa than a TF32 number.
  graph.allows_tf32 = options.precision != Precision::kFp32;
  keep_half_constants(graph);
  fuse_instance_norm(graph);
  fuse_activation(graph);
  fuse_lookup(graph);  // before an addition,
  fuse_residual(graph);
  fuse_lookup(graph);  // and behind one
  dynamic_range(graph, options.dynamic_range);
  fuse_pad(graph);
  fuse_separable(graph, options.separable, device);
  remove_dead(graph);
  choose_storage(graph, options.precision, options.half_io, options.half_weights);
  ir::verify(graph);
}

}  // namespace clgpu::passes
