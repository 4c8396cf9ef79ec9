// Room of CONV_2D: 2-D convolution with strides, dilations and groups.
#include "ops/conv2d.hpp"

#include <algorithm>

namespace clgpu::ops {
namespace {

constexpr int kConv2d = 3;
constexpr int kImage = 0, kWeights = 1, kBias = 2;  // inputs

OrRefusal<Imported> import(const tfl::NodeView& node) {
  const auto* params = node.params<tfl::ConvParams>();
  CLGPU_REFUSE_IF(params == nullptr, "the node has no parameters");
  Conv2dAttrs attrs;
  attrs.geometry.padding = params->padding;
  attrs.geometry.stride_h = params->stride_height;
  attrs.geometry.stride_w = params->stride_width;
  attrs.geometry.dilation_h = params->dilation_height;
  attrs.geometry.dilation_w = params->dilation_width;
  if (auto refusal = check_convolution(node, kImage, kWeights, kBias, attrs.geometry))
    return *refusal;
  const auto epilogue = fused_activation(params->activation);
  if (!epilogue) return Refusal{epilogue.reason()};
  return Imported{share(attrs), *epilogue};
}

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
      checked_windows(node.attrs<Conv2dAttrs>().geometry, src[1], src[2], weights[1], weights[2]);
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
    const std::int64_t group_c = cpu ? 1 : 8, group_p = cpu ? 1 : 8;
    // On a GPU neighbouring work-items read neighbouring weights; a CPU core walks one panel.
    const int panel = cpu ? channels : 32;
    const auto packed =
        pack_weights(node_, kWeights, groups, panel, node_.input(kImage).storage, device_);

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
    constexpr std::size_t kItems = 256;
    const auto packed =
        pack_weights(node_, kWeights, groups, size, node_.input(kImage).storage, device_);
    kernel::Launch launch("conv2d/implicit_gemm.cl", "conv2d_implicit_gemm");
    set_conv_types(launch, node_, kImage, kBias);
    launch.type("PACKED_T", packed.storage).macro("TM", size).macro("TN", size);
    launch.macro("VEC_K", aligned() ? 1 : 0);
    push_buffers(launch.src(kImage).scratch_in(0)).i32(pixels).i32(packed.panels);
    launch.i32(group_in).i32(group_out);
    push_geometry(launch);
    launch.range({uz(ceil_div(pixels, size)) * kItems, uz(packed.panels), uz(groups)}, {kItems});
    return {name, {packed.launch, launch}, {packed.scratch}};
  }

  /// Work-groups of implicit_gemm().
  std::int64_t gemm_groups(int size) const {
    return ceil_div(pixels, size) * ceil_div(group_out, size) * groups;
  }

  int group_in, groups, group_out;
  std::int64_t pixels, depth;

 private:
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

  kernel::Launch& push_buffers(kernel::Launch& launch) const {
    if (node_.has_input(kBias)) launch.src(kBias);
    return launch.dst(0);
  }

  void push_geometry(kernel::Launch& launch) const {
    const auto& geometry = node_.attrs<Conv2dAttrs>().geometry;
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
  } else {
    result.push_back(conv.direct("direct", 4, 1, 4));
    result.push_back(conv.implicit_gemm("implicit_gemm", 64));
    result.push_back(conv.implicit_gemm("implicit_gemm_wide", 128));
    // Tiles in local memory read least, provided that there are enough of them and that they are
    // filled; Mali's local memory is ordinary memory.
    const bool local_memory = device.vendor.find("ARM") == std::string::npos;
    if (local_memory && conv.group_out >= 32 && conv.gemm_groups(64) >= device.compute_units / 2) {
      const bool wide = conv.group_out >= 128 && conv.gemm_groups(128) >= 2 * device.compute_units;
      std::rotate(result.begin(), result.begin() + (wide ? 2 : 1), result.end());
    }
  }
  result.push_back(conv.naive());
  return result;
}

}  // namespace

ir::AttrsPtr with_padding(const Conv2dAttrs& attrs, int top, int bottom, int left, int right) {
  Conv2dAttrs result = attrs;
  result.geometry = pad_more(attrs.geometry, top, bottom, left, right);
  return share(result);
}

const Family kConv2dFamily{{"conv2d", /*has_epilogue=*/true, /*is_view=*/false},
                           {{kConv2d, "CONV_2D"}},
                           {},
                           /*core=*/true,
                           import,
                           infer,
                           candidates};

}  // namespace clgpu::ops
