// Room of CONV_2D: 2-D convolution with strides, dilations and groups. Its engines are in conv2d/.
#include <algorithm>

#include "ops/conv2d/convolution.hpp"

namespace clgpu::ops {
namespace {

using namespace conv2d;

constexpr int kConv2d = 3;

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
  const ir::Shape dst{src[0], at.h.out, at.w.out, weights[0]};
  check_residual_shape(node, dst);
  return {dst};
}

/// Whether vectors of 16 floats are registers of the host, which a CPU device runs on.
bool host_has_512_bit_registers() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

/// So few that every work-item has but some: what counts is how long one of them takes.
bool few_products(const Convolution& conv) {
  return conv.pixels * conv.out_c * conv.depth <= 2 << 20;
}

/// Pixels that a work-item of dot() reads its weights for.
int dot_tile(const Convolution& conv) { return conv.pixels < 4 ? 1 : 4; }

std::vector<kernel::Candidate> cpu_candidates(const Convolution& conv) {
  std::vector<kernel::Candidate> result;
  const int width = cpu_vector(conv.group_out);
  result.push_back(direct(conv, "direct", width, 1, 6));
  // Twice the sums: better where they fit the registers, worse where they do not.
  if (conv.group_out > width) {
    const auto wide = direct(conv, "direct_wide", width, 2, 6);
    result.insert(host_has_512_bit_registers() ? result.begin() : result.end(), wide);
  }
  result.push_back(implicit_gemm(conv, "implicit_gemm", 64));
  if (gemm_splits(conv) > 1) result.push_back(implicit_gemm_split(conv, "implicit_gemm_split"));
  if (few_products(conv)) result.push_back(dot(conv, 32, dot_tile(conv)));
  return result;
}

std::vector<kernel::Candidate> gpu_candidates(const Convolution& conv) {
  std::vector<kernel::Candidate> result;
  result.push_back(direct(conv, "direct", 4, 1, 4));
  result.push_back(implicit_gemm(conv, "implicit_gemm", 64));
  result.push_back(implicit_gemm(conv, "implicit_gemm_wide", 128));
  const std::int64_t splits = gemm_splits(conv);
  if (splits > 1) result.push_back(implicit_gemm_split(conv, "implicit_gemm_split"));
  // Tiles in local memory read least where they are filled; Mali's local memory is ordinary memory.
  // Of the tiles the largest that still keep the device busy.
  const bool local_memory = conv.device.vendor.find("ARM") == std::string::npos;
  if (local_memory && conv.group_out >= 16) {
    const bool wide =
        conv.group_out >= 128 && gemm_groups(conv, 128) >= 2 * conv.device.compute_units;
    // The launch that ends a split costs as much as some hundred steps of depth.
    const bool split = splits > 1 && conv.depth >= 1024;
    const int best = split ? 3 : wide ? 2 : 1;
    std::rotate(result.begin(), result.begin() + best, result.end());
  }
  if (few_products(conv)) {
    if (conv.depth < 64) result.insert(result.begin(), dot(conv, 8, dot_tile(conv)));
    result.insert(conv.depth < 64 ? result.begin() + 1 : result.begin(),
                  dot(conv, 32, dot_tile(conv)));
  }
  return result;
}

/// Whether the first of these candidates has work-groups for half of the compute units at least.
bool fills(const DeviceInfo& device, const std::vector<kernel::Candidate>& list) {
  if (list.empty() || list.front().launches.empty()) return false;
  const kernel::Launch& launch = list.front().launches.back();
  std::size_t groups = 1;
  for (std::size_t i = 0; i < 3; ++i) groups *= launch.global[i] / launch.local[i];
  return 2 * groups >= uz(device.compute_units);
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const Convolution conv(node, device);
  std::vector<kernel::Candidate> result =
      device.is_cpu() ? cpu_candidates(conv) : gpu_candidates(conv);
  std::vector<kernel::Candidate> fast = winograd(conv);
  // The best transform goes in front where it pays, the others stay alternatives.
  const auto rest = fast.begin() + (winograd_pays(conv) ? 1 : 0);
  result.insert(result.end(), rest, fast.end());
  result.insert(result.begin(), fast.begin(), rest);
  // Few channels leave most of a tensor core's block empty, few products most of the device.
  const bool fills_blocks = conv.group_out >= 8 && conv.depth >= 16 && !few_products(conv);
  const auto tensor = tensor_gemm(conv);
  result.insert(fills_blocks ? result.begin() : result.end(), tensor.begin(), tensor.end());
  const auto halo = tensor_halo(conv);
  result.insert(fills(device, halo) ? result.begin() : result.end(), halo.begin(), halo.end());
  result.push_back(naive(conv));
  return result;
}

}  // namespace

extern const Family kConv2dFamily;
const Family kConv2dFamily{
    {"conv2d", /*has_epilogue=*/true, /*is_view=*/false, /*residual=*/kResidual},
    {{kConv2d, "CONV_2D"}},
    {},
    /*core=*/true,
    import_convolution<tfl::ConvParams>,
    infer,
    candidates};

}  // namespace clgpu::ops
