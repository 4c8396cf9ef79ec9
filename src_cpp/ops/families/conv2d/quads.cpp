// Engine `quads`: sums in separate variables, quads read through buffers or images; for mobile
// GPUs.
#include "ops/products/quads.hpp"

#include "ops/families/conv2d/convolution.hpp"
#include "ops/products/half_sums.hpp"

namespace clgpu::ops::conv2d {

std::vector<kernel::Candidate> quads(const Convolution& conv) {
  if (conv.quantized() && !conv.is_int8()) return {};
  const QuadProduct product{kImage,        kWeights,       conv.pixels, conv.groups,
                            conv.group_in, conv.group_out, conv.depth,  conv.is_pointwise(),
                            conv.is_int8()};
  std::vector<kernel::Candidate> result;
  for (const QuadTile& tile : quad_tiles(conv.node, product, conv.device)) {
    kernel::Candidate candidate = pack_quads(conv.node, product, conv.device, tile);
    kernel::Launch launch(product.file(), product.entry());
    conv.set_types(launch);
    set_quads(launch, conv.node, product, conv.device, tile);
    if (product.int8) {
      const ChannelTable table = conv.channels(1, /*as_int8=*/true);
      candidate.launches.push_back(table.launch);
      candidate.scratch.insert(candidate.scratch.end(), {table.scales, table.result});
      conv.push_quantized_result(launch, table);
    } else {
      conv.push_result(launch);
    }
    launch.i32(conv.pixels).i32(conv.group_in).i32(conv.group_out);
    conv.push_geometry(launch);
    push_quad_zeros(launch, conv.node, product);
    candidate.launches.push_back(launch);
    result.push_back(std::move(candidate));
  }
  return with_half_forms(conv.node, conv.device, std::move(result));
}

}  // namespace clgpu::ops::conv2d
