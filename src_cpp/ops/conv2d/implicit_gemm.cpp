// Engine `implicit_gemm`: a product of matrices, tiled through local memory and registers, the left
// one (im2col) read from the image on the fly.
#include "ops/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {
namespace {

/// How the kernel finds the elements of the image: its macro GATHER.
int gather(const Convolution& conv, const GemmTile& tile) {
  if (!conv.aligned()) return 3;
  if (conv.is_pointwise() && conv.groups == 1) return 0;
  return conv.group_in % tile.tk == 0 ? 1 : 2;
}

Products products(const Convolution& conv) {
  return {conv.pixels, conv.group_out, conv.depth, conv.groups};
}

constexpr std::int64_t kMostSplits = 32;

kernel::Candidate make(const Convolution& conv, const GemmChoice& choice, bool half_sums) {
  const GemmTile& tile = choice.tile;
  const auto packed = pack_weights(conv.node, kWeights, conv.groups, tile.tn, conv.image_storage());
  // Whole steps for every split.
  const std::int64_t chunk = round_up(ceil_div(conv.depth, choice.splits), tile.tk);
  const std::int64_t splits = ceil_div(conv.depth, chunk);
  std::string name = std::string("implicit_gemm_") + (half_sums ? "half_" : "") + tile.name();
  if (splits > 1) name += "_split" + std::to_string(splits);

  kernel::Launch launch("conv2d/implicit_gemm.cl", "conv2d_implicit_gemm");
  Products parts = products(conv);
  parts.count *= splits;
  const bool vec_n = splits > 1 ? conv.group_out % 4 == 0 : conv.aligned_result();
  set_tile(launch, tile, vec_n, half_sums, parts);
  launch.macro("GATHER", gather(conv, tile)).macro("TAIL", conv.depth % tile.tk == 0 ? 0 : 1);
  launch.macro("SPLIT", splits > 1 ? 1 : 0).type("PACKED_T", packed.storage);
  launch.src(kImage).scratch_in(0);
  if (splits > 1) {
    launch.type("SRC_T", conv.image_storage()).type("DST_T", DType::kF32);
    set_border(launch, conv.geometry);
    set_no_epilogue(launch);
    set_epilogue(launch, {});
    launch.scratch_out(1).i32(splits).i32(chunk);
  } else {
    conv.set_types(launch);
    conv.push_result(launch);
  }
  launch.i32(conv.pixels).i32(packed.panels).i32(conv.group_in).i32(conv.group_out);
  conv.push_geometry(launch);
  if (splits == 1) return {name, {packed.launch, launch}, {packed.scratch}};

  const std::int64_t elements = conv.node.output(0).shape.elements();
  kernel::Launch sum("conv2d/sum_splits.cl", "conv2d_sum_splits");
  set_result_types(sum, conv.node, kBias);
  conv.push_result(sum.scratch_in(1)).i32(elements).i32(conv.out_c).i32(splits);
  sum.range({uz(elements)}, {kElementwiseGroup});
  const kernel::Scratch sums{splits * elements * static_cast<std::int64_t>(sizeof(float))};
  return {name, {packed.launch, launch, sum}, {packed.scratch, sums}};
}

}  // namespace

std::vector<kernel::Candidate> implicit_gemms(const Convolution& conv, std::size_t count) {
  std::vector<kernel::Candidate> result;
  for (const GemmChoice& choice : choose_tiles(products(conv), conv.device, count, kMostSplits)) {
    result.push_back(make(conv, choice, /*half_sums=*/false));
  }
  return result;
}

std::vector<kernel::Candidate> half_gemms(const Convolution& conv) {
  std::vector<kernel::Candidate> result;
  if (!conv.device.has_half || conv.image_storage() != DType::kF16) return result;
  for (const GemmChoice& choice : choose_tiles(products(conv), conv.device, 1, kMostSplits)) {
    result.push_back(make(conv, choice, /*half_sums=*/true));
  }
  return result;
}

}  // namespace clgpu::ops::conv2d
