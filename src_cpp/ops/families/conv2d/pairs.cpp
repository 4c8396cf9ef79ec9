// Engine `pairs`: 8-bit integers on CPUs.
#include "ops/products/pairs.hpp"

#include "ops/families/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {

std::vector<kernel::Candidate> pairs(const Convolution& conv) {
  if (conv.image_storage() == DType::kI16) return {};
  const PairProducts products{kImage,      kWeights,       conv.pixels,
                              conv.groups, conv.group_out, conv.depth};
  std::vector<kernel::Candidate> result;
  for (const PairTile& tile : pair_tiles(products, conv.device)) {
    kernel::Scratch packed{0};
    const kernel::Launch pack = pack_pairs(conv.node, products, tile, packed);
    const ChannelTable channels = conv.channels(1);
    kernel::Launch launch("conv2d/pairs.cl", "conv2d_pairs");
    conv.set_types(launch);
    const bool pointwise = conv.is_pointwise() && conv.in_h == conv.out_h;
    launch.macro("POINTWISE", pointwise ? 1 : 0);
    push_pairs(launch, conv.node, conv.device, products, tile, channels);
    conv.push_geometry(launch);
    launch.i32(conv.node.input(kImage).zero_point());
    result.push_back(
        {tile.name(), {pack, channels.launch, launch}, {packed, channels.scales, channels.result}});
  }
  return result;
}

}  // namespace clgpu::ops::conv2d
