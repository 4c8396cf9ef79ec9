// Engine `direct`: sums in registers, no staging in local memory.
#include <algorithm>

#include "ops/families/conv2d/convolution.hpp"

namespace clgpu::ops::conv2d {
namespace {

/// Pixel tiles of a CPU work-item: enough work to justify starting it, enough items for the cores.
std::int64_t cpu_tiles(const Convolution& conv, int channels, int tile) {
  constexpr std::int64_t kWork = 1 << 20;  // multiply-adds, about 10 us
  const std::int64_t by_work = kWork / (static_cast<std::int64_t>(channels) * tile * conv.depth);
  const std::int64_t all =
      ceil_div(conv.pixels, tile) * ceil_div(conv.group_out, channels) * conv.groups;
  return std::max<std::int64_t>(1, std::min(by_work, all / (4 * conv.device.compute_units)));
}

}  // namespace

kernel::Candidate direct(const Convolution& conv, const char* name, int width, int vectors,
                         int tile) {
  const bool cpu = conv.device.is_cpu();
  const int channels = width * vectors;
  // On a GPU, neighbouring work-items read neighbouring weights; a CPU core reads one panel in
  // order.
  std::int64_t group_c = 1;
  while (!cpu && group_c < 16 && group_c * channels < conv.group_out) group_c *= 2;
  const std::int64_t group_p = cpu ? 1 : 128 / group_c;
  const int panel = static_cast<int>(group_c) * channels;
  const bool words = conv.is_int8();
  const auto packed =
      words ? pack_words(conv.node, kImage, kWeights, conv.groups, panel)
            : pack_weights(conv.node, kWeights, conv.groups, panel, conv.image_storage());

  kernel::Launch launch("conv2d/direct.cl", "conv2d_direct");
  conv.set_types(launch);
  set_weights_type(launch, "PACKED_T", conv.node, packed.storage).macro("PANEL", panel);
  launch.macro("VW", width).macro("OV", vectors).macro("PX", tile);
  const bool quads = words ? conv.group_in % 16 == 0 : !cpu && conv.aligned();
  launch.macro("KV", quads ? 4 : 1).macro("WG_C", group_c).macro("WG_P", group_p);
  launch.macro("WORDS", !words ? 0 : conv.aligned() ? 1 : 2);
  const std::int64_t tiles = cpu ? cpu_tiles(conv, channels, tile) : 1;
  launch.src(kImage).scratch_in(0);
  kernel::Candidate candidate{name, {packed.launch}, {packed.scratch}};
  if (conv.quantized()) {
    const ChannelTable table = conv.channels(1, /*as_int8=*/true);
    candidate.launches.push_back(table.launch);
    candidate.scratch.insert(candidate.scratch.end(), {table.scales, table.result});
    conv.push_quantized_result(launch, table);
  } else {
    conv.push_result(launch);
  }
  launch.i32(conv.pixels).i32(tiles).i32(packed.panels);
  launch.i32(packed.zeros_at).i32(conv.group_in).i32(conv.group_out);
  conv.push_geometry(launch);
  if (words) {
    const std::int32_t weights_zero = int8_zero_point(conv.node.input(kWeights));
    set_words(launch, conv.device, weights_zero != 0);
    launch.i32(weights_zero);
  }
  launch.range({uz(ceil_div(conv.group_out, channels)), uz(ceil_div(conv.pixels, tiles * tile)),
                uz(conv.groups)},
               {uz(group_c), uz(group_p), 1});
  candidate.launches.push_back(launch);
  return candidate;
}

}  // namespace clgpu::ops::conv2d
