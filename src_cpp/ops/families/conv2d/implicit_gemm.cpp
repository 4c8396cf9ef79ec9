// Engine `implicit_gemm`: a product of matrices, tiled through local memory and registers; the left
// one (im2col) is read from the image on the fly. For int8 its elements are words of four channels.
#include "ops/families/conv2d/convolution.hpp"
#include "ops/products/half_sums.hpp"

namespace clgpu::ops::conv2d {
namespace {

/// Input channels of a group in elements of the product.
int elements_of(int channels, TileArith arith) {
  return arith == TileArith::kInt8 ? static_cast<int>(ceil_div(channels, 4)) : channels;
}

/// How the kernel computes the positions of the image's elements: its macro GATHER.
int gather(const Convolution& conv, const GemmTile& tile, TileArith arith) {
  const int channels = elements_of(conv.group_in, arith);
  if (arith == TileArith::kInt8 && !conv.aligned()) return 4;
  if (channels % 4 != 0) return 3;
  if (conv.is_pointwise() && conv.groups == 1) return 0;
  return channels % tile.tk == 0 ? 1 : 2;
}

Products products(const Convolution& conv, TileArith arith) {
  const std::int64_t taps = conv.filter_h * conv.filter_w;
  return {conv.pixels, conv.group_out, taps * elements_of(conv.group_in, arith), conv.groups};
}

constexpr std::int64_t kMostSplits = 32;

/// The launch that adds the sums of splits, without its arguments after dst.
kernel::Launch sum_splits(const Convolution& conv) {
  kernel::Launch sum("conv2d/sum_splits.cl", "conv2d_sum_splits");
  set_result_types(sum, conv.node, kBias);
  sum.scratch_in(1);
  const std::int64_t elements = conv.node.output(0).shape.elements();
  sum.range({uz(elements)}, {kElementwiseGroup});
  return sum;
}

kernel::Candidate make(const Convolution& conv, const GemmChoice& choice, TileArith arith) {
  const GemmTile& tile = choice.tile;
  const bool int8 = arith == TileArith::kInt8;
  const auto packed =
      int8 ? pack_words(conv.node, kImage, kWeights, conv.groups, tile.tn)
           : pack_weights(conv.node, kWeights, conv.groups, tile.tn, conv.image_storage());
  // Whole steps for every split.
  Products parts = products(conv, arith);
  const std::int64_t depth = parts.depth;
  const std::int64_t chunk = round_up(ceil_div(depth, choice.splits), tile.tk);
  const std::int64_t splits = ceil_div(depth, chunk);
  const char* kind = arith == TileArith::kHalf ? "half_" : "";
  std::string name = std::string("implicit_gemm_") + kind + tile.name();
  if (splits > 1) name += "_split" + std::to_string(splits);

  kernel::Launch launch("conv2d/implicit_gemm.cl", "conv2d_implicit_gemm");
  parts.count *= splits;
  const bool vec_n = splits > 1 ? conv.group_out % 4 == 0 : conv.aligned_result();
  set_tile(launch, tile, vec_n, arith, parts);
  launch.macro("GATHER", gather(conv, tile, arith)).macro("TAIL", depth % tile.tk == 0 ? 0 : 1);
  launch.macro("SPLIT", splits > 1 ? 1 : 0);
  set_weights_type(launch, "PACKED_T", conv.node, packed.storage);
  launch.src(kImage).scratch_in(0);
  kernel::Candidate candidate{name, {packed.launch}, {packed.scratch}};
  candidate.adds_halves = arith == TileArith::kHalf;
  const std::int64_t elements = conv.node.output(0).shape.elements();
  kernel::Launch sum = sum_splits(conv);
  kernel::Launch& last = splits > 1 ? sum : launch;
  if (splits > 1) {
    const DType sum_type = int8 ? DType::kI32 : DType::kF32;
    launch.type("SRC_T", conv.image_storage()).type("DST_T", sum_type);
    set_border(launch, conv.geometry);
    set_no_epilogue(launch, sum_type);
    set_epilogue(launch, {});
    launch.scratch_out(1).i32(splits).i32(chunk);
    candidate.scratch.push_back({splits * elements * static_cast<std::int64_t>(size_of(sum_type))});
  } else {
    conv.set_types(launch);
  }
  if (int8) {
    const auto channels =
        conv.channels(static_cast<int>(candidate.scratch.size()), /*as_int8=*/true);
    candidate.launches.push_back(channels.launch);
    candidate.scratch.insert(candidate.scratch.end(), {channels.scales, channels.result});
    conv.push_quantized_result(last, channels);
  } else {
    conv.push_result(last);
  }
  launch.i32(conv.pixels).i32(packed.panels).i32(conv.group_in).i32(conv.group_out);
  conv.push_geometry(launch);
  if (int8) {
    const std::int32_t weights_zero = int8_zero_point(conv.node.input(kWeights));
    set_words(launch, conv.device, weights_zero != 0);
    launch.i32(byte_word(int8_zero_point(conv.node.input(kImage)))).i32(weights_zero);
  }
  candidate.launches.push_back(launch);
  if (splits > 1) {
    candidate.launches.push_back(sum.i32(elements).i32(conv.out_c).i32(splits));
  }
  return candidate;
}

std::vector<kernel::Candidate> gemms(const Convolution& conv, std::size_t count, TileArith arith) {
  std::vector<kernel::Candidate> result;
  for (const GemmChoice& choice :
       choose_tiles(products(conv, arith), conv.device, count, kMostSplits)) {
    result.push_back(make(conv, choice, arith));
  }
  return result;
}

}  // namespace

std::vector<kernel::Candidate> implicit_gemms(const Convolution& conv, std::size_t count) {
  return gemms(conv, count, TileArith::kFloat);
}

std::vector<kernel::Candidate> half_gemms(const Convolution& conv) {
  if (!takes_half_sums(conv.node, conv.device)) return {};
  return gemms(conv, 1, TileArith::kHalf);
}

std::vector<kernel::Candidate> int8_gemms(const Convolution& conv, std::size_t count) {
  if (!conv.is_int8()) return {};
  return gemms(conv, count, TileArith::kInt8);
}

}  // namespace clgpu::ops::conv2d
