// Engine `implicit_gemm`: a product of matrices, tiled through local memory and registers, the left
// one (im2col) read from the image on the fly.
#include <algorithm>

#include "ops/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {
namespace {

constexpr int kSplitTile = 64;

/// Depth of a split: whole steps of the kernel.
std::int64_t chunk(const Convolution& conv, std::int64_t count) {
  return round_up(ceil_div(conv.depth, count), 16);
}

kernel::Launch make_launch(const Convolution& conv, const PackedWeights& packed, int size,
                           std::int64_t layers) {
  constexpr std::size_t kItems = 256;
  kernel::Launch launch("conv2d/implicit_gemm.cl", "conv2d_implicit_gemm");
  launch.type("PACKED_T", packed.storage).macro("TM", size).macro("TN", size);
  launch.macro("VEC_K", conv.aligned() ? 1 : 0);
  launch.range({uz(ceil_div(conv.pixels, size)) * kItems, uz(packed.panels), uz(layers)}, {kItems});
  return launch;
}

void push_sizes(kernel::Launch& launch, const Convolution& conv, const PackedWeights& packed) {
  launch.i32(conv.pixels).i32(packed.panels).i32(conv.group_in).i32(conv.group_out);
  conv.push_geometry(launch);
}

}  // namespace

std::int64_t gemm_groups(const Convolution& conv, int size) {
  return ceil_div(conv.pixels, size) * ceil_div(conv.group_out, size) * conv.groups;
}

std::int64_t gemm_splits(const Convolution& conv) {
  constexpr std::int64_t kLeastDepth = 128, kMost = 32;
  const std::int64_t wanted =
      ceil_div(2 * conv.device.compute_units, gemm_groups(conv, kSplitTile));
  const std::int64_t most = std::max<std::int64_t>(1, std::min(kMost, conv.depth / kLeastDepth));
  const std::int64_t count = std::min(wanted, most);
  return ceil_div(conv.depth, chunk(conv, count));
}

kernel::Candidate implicit_gemm(const Convolution& conv, const char* name, int size) {
  const auto packed = pack_weights(conv.node, kWeights, conv.groups, size, conv.image_storage());
  kernel::Launch launch = make_launch(conv, packed, size, conv.groups);
  conv.set_types(launch);
  launch.macro("SPLIT", 0);
  conv.push_result(launch.src(kImage).scratch_in(0));
  push_sizes(launch, conv, packed);
  return {name, {packed.launch, launch}, {packed.scratch}};
}

kernel::Candidate implicit_gemm_split(const Convolution& conv, const char* name) {
  const auto packed =
      pack_weights(conv.node, kWeights, conv.groups, kSplitTile, conv.image_storage());
  const std::int64_t count = gemm_splits(conv);
  kernel::Launch launch = make_launch(conv, packed, kSplitTile, conv.groups * count);
  launch.type("SRC_T", conv.image_storage()).type("DST_T", DType::kF32).macro("SPLIT", 1);
  launch.macro("BIAS", 0).type("BIAS_T", DType::kF32);
  launch.macro("RESIDUAL", 0).type("RESIDUAL_T", DType::kF32);
  set_epilogue(launch, {});
  launch.src(kImage).scratch_in(0).scratch_out(1).i32(count).i32(chunk(conv, count));
  push_sizes(launch, conv, packed);

  const std::int64_t elements = conv.node.output(0).shape.elements();
  kernel::Launch sum("conv2d/sum_splits.cl", "conv2d_sum_splits");
  set_result_types(sum, conv.node, kBias);
  conv.push_result(sum.scratch_in(1)).i32(elements).i32(conv.out_c).i32(count);
  sum.range({uz(elements)}, {kElementwiseGroup});
  const kernel::Scratch sums{count * elements * static_cast<std::int64_t>(sizeof(float))};
  return {name, {packed.launch, launch, sum}, {packed.scratch, sums}};
}

}  // namespace clgpu::ops::conv2d
