// Room of CONV_2D: 2-D convolution with strides, dilations and groups.
#include "ops/conv_geometry.hpp"

#include <algorithm>

namespace clgpu::ops {
namespace {

constexpr int kConv2d = 3;
constexpr int kImage = 0, kWeights = 1, kBias = 2;  // inputs

ir::Shapes infer(const NodeContext& node) {
  const ir::Shape& src = node.input(kImage).shape;
  const ir::Shape& weights = node.input(kWeights).shape;
  const int group_in = weights[3];
  if (group_in < 1 || src[3] % group_in != 0 || weights[0] % (src[3] / group_in) != 0) {
    throw ShapeError("an image of " + std::to_string(src[3]) +
                     " channels does not split into groups for weights " + weights.str());
  }
  check_bias_shape(node, kBias, weights[0]);
  const ConvWindows at =
      checked_windows(node.attrs<ConvAttrs>().geometry, src[1], src[2], weights[1], weights[2]);
  return {{src[0], at.h.out, at.w.out, weights[0]}};
}

/// One convolution in numbers, and how its launches are made.
class Convolution {
 public:
  Convolution(const NodeContext& node, const DeviceInfo& device) : node_(node), device_(device) {
    const ir::Shape& src = node.input(kImage).shape;
    const ir::Shape& weights = node.input(kWeights).shape;
    const ir::Shape& dst = node.output(0).shape;
    group_in = weights[3];
    groups = src[3] / group_in;
    group_out = weights[0] / groups;
    pixels = dst.elements(0, 3);
    depth = weights.elements(1, 4);
  }

  kernel::Candidate naive() const {
    kernel::Launch launch("conv2d/naive.cl", "conv2d_naive");
    set_conv_types(launch, node_, kImage, kBias);
    launch.type("WEIGHTS_T", node_.input(kWeights).storage);
    const std::int64_t elements = node_.output(0).shape.elements();
    push_buffers(launch.src(kImage).src(kWeights)).i32(elements).i32(group_in).i32(group_out);
    push_geometry(launch);
    launch.range({uz(elements)}, {kElementwiseGroup});
    return {"naive", {launch}, {}};
  }

  /// `vectors` vectors of `width` channels x `tile` pixels a work-item.
  kernel::Candidate direct(const char* name, int width, int vectors, int tile) const {
    const bool cpu = device_.is_cpu();
    const int channels = width * vectors;
    // On a GPU neighbouring work-items read neighbouring weights; a CPU core walks one panel.
    std::int64_t group_c = 1;
    while (!cpu && group_c < 16 && group_c * channels < group_out) group_c *= 2;
    const std::int64_t group_p = cpu ? 1 : 128 / group_c;
    const int panel = static_cast<int>(group_c) * channels;
    const auto packed = pack_weights(node_, kWeights, groups, panel, node_.input(kImage).storage);

    kernel::Launch launch("conv2d/direct.cl", "conv2d_direct");
    set_conv_types(launch, node_, kImage, kBias);
    launch.type("PACKED_T", packed.storage).macro("PANEL", panel);
    launch.macro("VW", width).macro("OV", vectors).macro("PX", tile);
    launch.macro("KV", !cpu && aligned() ? 4 : 1).macro("WG_C", group_c).macro("WG_P", group_p);
    const std::int64_t tiles = cpu ? cpu_tiles(channels, tile) : 1;
    push_buffers(launch.src(kImage).scratch_in(0)).i32(pixels).i32(tiles).i32(packed.panels);
    launch.i32(packed.zeros_at).i32(group_in).i32(group_out);
    push_geometry(launch);
    launch.range(
        {uz(ceil_div(group_out, channels)), uz(ceil_div(pixels, tiles * tile)), uz(groups)},
        {uz(group_c), uz(group_p), 1});
    return {name, {packed.launch, launch}, {packed.scratch}};
  }

  /// Tiles of `size` pixels x `size` channels.
  kernel::Candidate implicit_gemm(const char* name, int size) const {
    const auto packed = pack_weights(node_, kWeights, groups, size, node_.input(kImage).storage);
    kernel::Launch launch = gemm_launch(packed, size, groups);
    set_conv_types(launch, node_, kImage, kBias);
    launch.macro("SPLIT", 0);
    push_buffers(launch.src(kImage).scratch_in(0));
    push_gemm_sizes(launch, packed);
    return {name, {packed.launch, launch}, {packed.scratch}};
  }

  /// The same, the sum over the depth shared by splits() work-groups and put together by a launch
  /// of its own: for layers of few tiles and great depth.
  kernel::Candidate split_gemm(const char* name) const {
    const auto packed =
        pack_weights(node_, kWeights, groups, kSplitTile, node_.input(kImage).storage);
    const std::int64_t count = splits();
    kernel::Launch launch = gemm_launch(packed, kSplitTile, groups * count);
    launch.type("SRC_T", node_.input(kImage).storage).type("DST_T", DType::kF32);
    launch.type("BIAS_T", DType::kF32).macro("BIAS", 0).macro("SPLIT", 1);
    set_epilogue(launch, {});
    launch.src(kImage).scratch_in(0).scratch_out(1).i32(count).i32(chunk(count));
    push_gemm_sizes(launch, packed);

    const std::int64_t elements = node_.output(0).shape.elements();
    kernel::Launch sum("conv2d/sum_splits.cl", "conv2d_sum_splits");
    set_result_types(sum, node_, kBias);
    push_buffers(sum.scratch_in(1)).i32(elements).i32(node_.output(0).shape[3]).i32(count);
    sum.range({uz(elements)}, {kElementwiseGroup});
    const kernel::Scratch sums{count * elements * static_cast<std::int64_t>(sizeof(float))};
    return {name, {packed.launch, launch, sum}, {packed.scratch, sums}};
  }

  /// Work-groups that share one tile's depth: as many as keep the device busy, 1 for no split.
  std::int64_t splits() const {
    constexpr std::int64_t kLeastDepth = 128, kMost = 32;
    const std::int64_t wanted = ceil_div(2 * device_.compute_units, gemm_groups(kSplitTile));
    const std::int64_t most = std::max<std::int64_t>(1, std::min(kMost, depth / kLeastDepth));
    const std::int64_t count = std::min(wanted, most);
    return ceil_div(depth, chunk(count));
  }

  /// Work-groups of implicit_gemm().
  std::int64_t gemm_groups(int size) const {
    return ceil_div(pixels, size) * ceil_div(group_out, size) * groups;
  }

  int group_in, groups, group_out;
  std::int64_t pixels, depth;

 private:
  static constexpr int kSplitTile = 64;

  /// Four input channels from a multiple of four on lie at an address aligned to four elements.
  bool aligned() const { return group_in % 4 == 0; }

  /// Pixel tiles of a CPU work-item: enough work to pay for starting it, enough items for the
  /// cores.
  std::int64_t cpu_tiles(int channels, int tile) const {
    constexpr std::int64_t kWork = 1 << 20;  // multiply-adds, some 10 us
    const std::int64_t by_work = kWork / (static_cast<std::int64_t>(channels) * tile * depth);
    const std::int64_t all = ceil_div(pixels, tile) * ceil_div(group_out, channels) * groups;
    return std::max<std::int64_t>(1, std::min(by_work, all / (4 * device_.compute_units)));
  }

  /// Depth of a split: whole steps of the kernel.
  std::int64_t chunk(std::int64_t count) const { return round_up(ceil_div(depth, count), 16); }

  kernel::Launch gemm_launch(const PackedWeights& packed, int size, std::int64_t layers) const {
    constexpr std::size_t kItems = 256;
    kernel::Launch launch("conv2d/implicit_gemm.cl", "conv2d_implicit_gemm");
    launch.type("PACKED_T", packed.storage).macro("TM", size).macro("TN", size);
    launch.macro("VEC_K", aligned() ? 1 : 0);
    launch.range({uz(ceil_div(pixels, size)) * kItems, uz(packed.panels), uz(layers)}, {kItems});
    return launch;
  }

  void push_gemm_sizes(kernel::Launch& launch, const PackedWeights& packed) const {
    launch.i32(pixels).i32(packed.panels).i32(group_in).i32(group_out);
    push_geometry(launch);
  }

  kernel::Launch& push_buffers(kernel::Launch& launch) const {
    if (node_.has_input(kBias)) launch.src(kBias);
    return launch.dst(0);
  }

  void push_geometry(kernel::Launch& launch) const {
    const auto& geometry = node_.attrs<ConvAttrs>().geometry;
    const ir::Shape& src = node_.input(kImage).shape;
    const ir::Shape& weights = node_.input(kWeights).shape;
    const ConvWindows at = windows(geometry, src[1], src[2], weights[1], weights[2]);
    push_conv_sizes(launch, node_, kImage, kWeights, geometry);
    launch.i32(geometry.dilation_h).i32(geometry.dilation_w).i32(at.h.before).i32(at.w.before);
  }

  const NodeContext& node_;
  const DeviceInfo& device_;
};

/// Whether vectors of 16 floats are registers of the host, which a CPU device runs on.
bool host_has_512_bit_registers() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const Convolution conv(node, device);
  std::vector<kernel::Candidate> result;
  if (device.is_cpu()) {
    const int width = cpu_vector(conv.group_out);
    result.push_back(conv.direct("direct", width, 1, 6));
    // Twice the sums: better where they fit the registers, worse where they do not.
    if (conv.group_out > width) {
      const auto wide = conv.direct("direct_wide", width, 2, 6);
      result.insert(host_has_512_bit_registers() ? result.begin() : result.end(), wide);
    }
    result.push_back(conv.implicit_gemm("implicit_gemm", 64));
    if (conv.splits() > 1) result.push_back(conv.split_gemm("implicit_gemm_split"));
  } else {
    result.push_back(conv.direct("direct", 4, 1, 4));
    result.push_back(conv.implicit_gemm("implicit_gemm", 64));
    result.push_back(conv.implicit_gemm("implicit_gemm_wide", 128));
    if (conv.splits() > 1) result.push_back(conv.split_gemm("implicit_gemm_split"));
    // Tiles in local memory read least where they are filled; Mali's local memory is ordinary
    // memory. Of the tiles the largest that still keep the device busy.
    const bool local_memory = device.vendor.find("ARM") == std::string::npos;
    if (local_memory && conv.group_out >= 16) {
      const bool wide = conv.group_out >= 128 && conv.gemm_groups(128) >= 2 * device.compute_units;
      // The launch that ends a split costs as much as some hundred steps of depth.
      const bool split = conv.splits() > 1 && conv.depth >= 1024;
      const int best = split ? 3 : wide ? 2 : 1;
      std::rotate(result.begin(), result.begin() + best, result.end());
    }
  }
  result.push_back(conv.naive());
  return result;
}

}  // namespace

extern const Family kConv2dFamily;
const Family kConv2dFamily{{"conv2d", /*has_epilogue=*/true, /*is_view=*/false},
                           {{kConv2d, "CONV_2D"}},
                           {},
                           /*core=*/true,
                           import_convolution<tfl::ConvParams>,
                           infer,
                           candidates};

}  // namespace clgpu::ops
