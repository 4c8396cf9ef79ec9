#include "ops/families/instance_norm.hpp"
#include "ops/families/reduce.hpp"
#include "passes/moments.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void fuse_instance_norm(ir::Graph& graph) {
  fuse_moments(graph, {"fuse_instance_norm", ops::keeps_mean_of_pixels, ops::instance_norm});
}

}  // namespace clgpu::passes
