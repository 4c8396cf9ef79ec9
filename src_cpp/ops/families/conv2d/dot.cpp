// Engine `dot`: several work-items share the sum of each output.
#include <algorithm>

#include "ops/families/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {

kernel::Candidate dot(const Convolution& conv, int lanes, int tile) {
  constexpr int kItems = 256;
  const std::int64_t channels = kItems / lanes;
  kernel::Launch launch("conv2d/dot.cl", "conv2d_dot");
  conv.set_types(launch);
  set_weights_type(launch, "WEIGHTS_T", conv.node, conv.node.input(kWeights).storage);
  launch.macro("LANES", lanes).macro("WG_C", channels).macro("PX", tile);
  launch.macro("KV", conv.aligned() ? 4 : 1);
  conv.push_result(launch.src(kImage).src(kWeights));
  launch.i32(conv.pixels).i32(conv.group_in).i32(conv.group_out);
  conv.push_geometry(launch);
  launch.range({uz(lanes), uz(conv.out_c), uz(ceil_div(conv.pixels, tile))},
               {uz(lanes), uz(channels), 1});
  return {"dot_" + std::to_string(lanes) + "x" + std::to_string(tile), {launch}, {}};
}

}  // namespace clgpu::ops::conv2d
