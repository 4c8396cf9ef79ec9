// Family of instance normalisation; the pass fuse_instance_norm makes the nodes from the elementary
// operations that converters write.
#include "ops/families/instance_norm.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/moments.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {

extern const Family kInstanceNormFamily;

namespace {

using moments::kBias, moments::kScale;
constexpr int kImage = moments::kX;
constexpr int kMoments = 0, kFactors = 1;  // scratch

ir::Shapes infer(const NodeContext& node) {
  const std::string channels = std::to_string(node.input(kImage).shape.back(0));
  return moments::infer(node, "an image of " + channels + " channels does");
}

std::int64_t power_of_two(std::int64_t at_least) {
  std::int64_t power = 1;
  while (power < at_least) power *= 2;
  return power;
}

// How a work-group covers an image: `lanes` work-items next to each other along the channels, each
// with `width` channels, on `rows` pixels at a time; `tiles` groups cover all channels.
struct Tiling {
  std::int64_t width, lanes, rows, tiles;

  Tiling(int channels_each, std::int64_t channels, const DeviceInfo& device)
      : width(channels_each) {
    constexpr std::int64_t kMostLanes = 32;
    const auto most = static_cast<std::int64_t>(group_of(256, device));
    lanes = std::min({kMostLanes, most, power_of_two(ceil_div(channels, width))});
    rows = most / lanes;
    tiles = ceil_div(channels, lanes * width);
  }
  void set(kernel::Launch& launch, std::int64_t groups, std::int64_t images) const {
    launch.macro("VW", width).macro("LANES", lanes).macro("ROWS", rows);
    launch.range({uz(groups * lanes * rows), uz(tiles), uz(images)}, {uz(lanes * rows)});
  }
};

/// Mean and factor of each channel, from the moments of `chunks` chunks.
kernel::Launch factors_of(const NodeContext& node, const DeviceInfo& device, float epsilon,
                          std::int64_t chunk, std::int64_t chunks) {
  const ir::Shape& src = node.input(kImage).shape;
  const std::int64_t images = src[0], channels = src.back(0);
  // Work-items of a group that merges chunks.
  const auto group = static_cast<std::int64_t>(group_of(256, device));
  const std::int64_t merged = std::min<std::int64_t>(8, group), shared = group / merged;
  const bool has_scale = node.has_input(kScale);
  kernel::Launch factors("instance_norm/factors.cl", "instance_norm_factors");
  factors.macro("WX", merged).macro("WY", shared).macro("SCALE", has_scale ? 1 : 0);
  factors.type("SCALE_T", has_scale ? node.input(kScale).storage : DType::kF32);
  factors.scratch_in(kMoments);
  if (has_scale) factors.src(kScale);
  factors.scratch_out(kFactors).i32(src.elements() / images / channels).i32(channels);
  factors.i32(chunk).i32(chunks).f32(epsilon);
  factors.range({uz(round_up(channels, merged) * shared), uz(images)}, {uz(group)});
  return factors;
}

/// The same if channels share both in groups.
kernel::Launch group_factors_of(const NodeContext& node, const DeviceInfo& device, float epsilon,
                                std::int64_t chunk, std::int64_t chunks, std::int64_t groups) {
  const ir::Shape& src = node.input(kImage).shape;
  const std::int64_t images = src[0], channels = src.back(0);
  const auto group = static_cast<std::int64_t>(group_of(device.is_cpu() ? 16 : 128, device));
  const bool has_scale = node.has_input(kScale);
  kernel::Launch factors("instance_norm/group_factors.cl", "instance_norm_group_factors");
  factors.macro("WG", group).macro("SCALE", has_scale ? 1 : 0);
  factors.type("SCALE_T", has_scale ? node.input(kScale).storage : DType::kF32);
  factors.scratch_in(kMoments);
  if (has_scale) factors.src(kScale);
  factors.scratch_out(kFactors).i32(src.elements() / images / channels).i32(channels);
  factors.i32(channels / groups).i32(chunk).i32(chunks).f32(epsilon);
  factors.range({uz(groups * group), uz(images)}, {uz(group)});
  return factors;
}

// `width`: channels that a work-item reads at once; `groups` of channels, or 0 for none.
kernel::Candidate in_vectors_of(int width, const NodeContext& node, const DeviceInfo& device,
                                float epsilon, int groups) {
  constexpr std::int64_t kRepeat = 4;  // pixels for which a work-item reads its factors once
  const ir::Tensor& src = node.input(kImage);
  const std::int64_t images = src.shape[0], channels = src.shape.back(0);
  const std::int64_t pixels = src.shape.elements() / images / channels;
  const Tiling reading(width, channels, device);
  // On an H200, stores of 8 halves take twice the time of two stores of 4.
  const Tiling writing(std::min(width, 4), channels, device);
  // Four work-groups per compute unit, but not so short chains of sums that merging them dominates,
  // nor so long ones that they lose precision.
  const std::int64_t wanted = 4 * std::int64_t{device.compute_units};
  const std::int64_t each = ceil_div(pixels * reading.tiles * images, reading.rows * wanted);
  // An item on its own sums the differences of all its pixels from the first one, which may be far
  // from the mean.
  const std::int64_t longest = reading.rows < 8 ? 32 : 256;
  const std::int64_t chunk = reading.rows * std::clamp<std::int64_t>(each, 4, longest);
  const std::int64_t chunks = ceil_div(pixels, chunk);
  kernel::Launch moments("instance_norm/moments.cl", "instance_norm_moments");
  moments.type("SRC_T", src.storage).src(kImage).scratch_out(kMoments);
  moments.i32(pixels).i32(channels).i32(chunk);
  reading.set(moments, chunks, images);

  const kernel::Launch factors =
      groups == 0 ? factors_of(node, device, epsilon, chunk, chunks)
                  : group_factors_of(node, device, epsilon, chunk, chunks, groups);

  kernel::Launch normalize("instance_norm/normalize.cl", "instance_norm_normalize");
  normalize.type("SRC_T", src.storage).macro("REPEAT", kRepeat);
  set_result_types(normalize, node, kBias);
  push_result(normalize.src(kImage).scratch_in(kFactors), node, kBias).i32(pixels).i32(channels);
  writing.set(normalize, ceil_div(pixels, writing.rows * kRepeat), images);

  const std::int64_t of_float = static_cast<std::int64_t>(size_of(DType::kF32));
  return {width > 1 ? "vector_" + std::to_string(width) : "scalar",
          {moments, factors, normalize},
          {{images * chunks * 2 * channels * of_float}, {images * 2 * channels * of_float}},
          {},
          // No launch reads src after the last one, so dst may overwrite it.
          moments::in_place(node)};
}

std::vector<kernel::Candidate> candidates_of(const NodeContext& node, const DeviceInfo& device,
                                             float epsilon, int groups) {
  std::vector<kernel::Candidate> list;
  const int channels = node.input(kImage).shape.back(0);
  for (const int width : {8, 4}) {
    // 16 bytes are the most that a work-item reads at once.
    if (width == 8 && size_of(node.input(kImage).storage) != 2) continue;
    if (channels % width == 0 && result_layout(node).aligned(width)) {
      list.push_back(in_vectors_of(width, node, device, epsilon, groups));
    }
  }
  list.push_back(in_vectors_of(1, node, device, epsilon, groups));
  return list;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  return candidates_of(node, device, node.attrs<MomentsAttrs>().epsilon, 0);
}

}  // namespace

ir::Node instance_norm(const ir::Node& last, int x, float epsilon, int scale, int bias) {
  return moments::node(kInstanceNormFamily, last, x, epsilon, scale, bias);
}

std::vector<kernel::Candidate> instance_norm_candidates(const NodeContext& node,
                                                        const DeviceInfo& device, float epsilon,
                                                        int groups) {
  return candidates_of(node, device, epsilon, groups);
}

const Family kInstanceNormFamily = [] {
  Family family;
  family.name = "instance_norm";
  family.attrs = ir::attrs_type<MomentsAttrs>();
  family.has_epilogue = true;
  family.residual = moments::kResidual;
  family.writes_slices = true;
  family.core = true;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = moments::flops;
  family.stock_passes = 6;
  return family;
}();

}  // namespace clgpu::ops
