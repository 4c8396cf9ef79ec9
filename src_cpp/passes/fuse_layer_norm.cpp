#include "ops/families/layer_norm.hpp"
#include "ops/families/reduce.hpp"
#include "passes/moments.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {

void fuse_layer_norm(ir::Graph& graph, bool norms) {
  constexpr const char* kPass = "fuse_layer_norm";
  if (!norms) return ir::skipped(graph, kPass, "the option engines names a kernel of its parts");
  fuse_moments(graph, {kPass, ops::is_mean_of_row, ops::layer_norm});
}

}  // namespace clgpu::passes
