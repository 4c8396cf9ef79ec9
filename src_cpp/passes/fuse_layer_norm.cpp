#include "ops/families/layer_norm.hpp"
#include "ops/families/reduce.hpp"
#include "passes/moments.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void fuse_layer_norm(ir::Graph& graph) {
  fuse_moments(graph, {"fuse_layer_norm", ops::is_mean_of_row, ops::layer_norm});
}

}  // namespace clgpu::passes
