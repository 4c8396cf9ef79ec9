#include "passes/pass.hpp"

namespace clgpu::passes {

void run_pipeline(ir::Graph& graph, Precision precision, bool half_io) {
  keep_half_constants(graph);
  fuse_activation(graph);
  fuse_residual(graph);
  fuse_pad(graph);
  remove_dead(graph);
  choose_storage(graph, precision, half_io);
  ir::verify(graph);
}

}  // namespace clgpu::passes
