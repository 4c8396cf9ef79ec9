// Room of CONV_2D: 2-D convolution with strides, dilations and groups. Its engines are in conv2d/.
#include <algorithm>

#include "ops/conv2d/convolution.hpp"
#include "ops/conv_rows.hpp"

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

/// So few that every work-item has but some: what counts is how long one of them takes.
bool few_products(const Convolution& conv) {
  return conv.pixels * conv.out_c * conv.depth <= 2 << 20;
}

kernel::Candidate plain(const Convolution& conv, int width, int vectors, int tile) {
  return kernel::of_form(kernel::Form::kPlain, direct(conv, "direct", width, vectors, tile));
}

/// Pixels that a work-item of dot() reads its weights for.
int dot_tile(const Convolution& conv) { return conv.pixels < 4 ? 1 : 4; }

void append(std::vector<kernel::Candidate>& list, const std::vector<kernel::Candidate>& more,
            std::size_t most = 16) {
  list.insert(list.end(), more.begin(),
              more.begin() + static_cast<std::ptrdiff_t>(std::min(most, more.size())));
}

std::vector<kernel::Candidate> cpu_candidates(const Convolution& conv) {
  std::vector<kernel::Candidate> result;
  const int width = cpu_vector(conv.group_out);
  result.push_back(plain(conv, width, 1, 6));
  // Twice the sums: better where they fit the registers, worse where they do not.
  if (conv.group_out > width) {
    const auto wide = direct(conv, "direct_wide", width, 2, 6);
    result.insert(host_has_512_bit_registers() ? result.begin() : result.end(), wide);
  }
  append(result, implicit_gemms(conv, 2));
  append(result, image_tiles(conv), 1);
  if (few_products(conv)) result.push_back(dot(conv, 32, dot_tile(conv)));
  append(result, quads(conv));
  return result;
}

/// No private arrays in front, nor local memory, which Mali has none of; see docs/devices.md.
std::vector<kernel::Candidate> mobile_candidates(const Convolution& conv) {
  std::vector<kernel::Candidate> result = quads(conv);
  result.push_back(plain(conv, 4, 1, 4));
  append(result, implicit_gemms(conv, 2));
  return result;
}

std::vector<kernel::Candidate> gpu_candidates(const Convolution& conv) {
  const auto gemms = implicit_gemms(conv, 6);
  const auto tiles = image_tiles(conv);
  const auto simple = plain(conv, 4, 1, 4);
  // An image tile reads least, but there are few of them and they share no depth; a product pads
  // channels to 16 at least.
  constexpr int kPieceArea = 128, kNarrow = 32;
  const std::int64_t pieces =
      ceil_div(conv.pixels, kPieceArea) * ceil_div(conv.group_out, 64) * conv.groups;
  const bool tiles_first = pieces >= 4 * conv.device.compute_units &&
                           (conv.group_out <= kNarrow || conv.filter_h * conv.filter_w > 9);
  std::vector<kernel::Candidate> result = tiles_first ? tiles : gemms;
  append(result, tiles_first ? gemms : tiles);
  result.push_back(simple);
  if (few_products(conv)) {
    if (conv.depth < 64) result.insert(result.begin(), dot(conv, 8, dot_tile(conv)));
    result.insert(conv.depth < 64 ? result.begin() + 1 : result.begin(),
                  dot(conv, 32, dot_tile(conv)));
  }
  append(result, quads(conv));
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

/// Of integers; int16 has but plain forms.
std::vector<kernel::Candidate> quantized_candidates(const Convolution& conv) {
  const bool cpu = conv.device.is_cpu(), mobile = conv.device.is_mobile();
  std::vector<kernel::Candidate> result;
  if (cpu) append(result, pairs(conv));
  if (mobile) append(result, quads(conv));
  const auto gemms = int8_gemms(conv, cpu ? 1 : mobile ? 2 : 6);
  const auto simple = conv.is_int8() ? plain(conv, 4, 1, 4) : plain(conv, 1, 4, 4);
  if (mobile && !conv.is_int8()) return {naive(conv), simple};  // the latter's sums are an array
  if (mobile) result.push_back(simple);
  append(result, gemms);
  if (!mobile) {
    result.push_back(simple);
    append(result, quads(conv));
  }
  const auto tensor = tensor_gemm(conv), halo = tensor_halo(conv);
  result.insert(result.begin(), halo.begin(), halo.end());
  result.insert(result.begin(), tensor.begin(), tensor.end());
  result.push_back(naive(conv));
  return result;
}

/// Floats with int8 weights: the engines whose kernels scale sums.
std::vector<kernel::Candidate> int8_weights_candidates(const Convolution& conv) {
  const bool cpu = conv.device.is_cpu();
  const int width = cpu ? cpu_vector(conv.group_out) : 4;
  std::vector<kernel::Candidate> result{plain(conv, width, 1, cpu ? 6 : 4)};
  if (cpu && conv.group_out > width) {
    result.insert(host_has_512_bit_registers() ? result.begin() : result.end(),
                  direct(conv, "direct_wide", width, 2, 6));
  }
  if (few_products(conv)) {
    result.insert(cpu ? result.end() : result.begin(),
                  dot(conv, conv.depth < 64 ? 8 : 32, dot_tile(conv)));
  }
  const auto gemms = implicit_gemms(conv, cpu ? 1 : 4);
  const bool gemms_first = !cpu && !few_products(conv);
  result.insert(gemms_first ? result.begin() : result.end(), gemms.begin(), gemms.end());
  const auto vectors = quads(conv);
  const bool vectors_first = conv.device.is_mobile();
  result.insert(vectors_first ? result.begin() : result.end(), vectors.begin(), vectors.end());
  result.push_back(naive(conv));
  return result;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const Convolution conv(node, device);
  if (conv.hybrid()) return {naive(conv)};
  if (conv.quantized()) return quantized_candidates(conv);
  if (has_int8_weights(node)) return int8_weights_candidates(conv);
  std::vector<kernel::Candidate> result = device.is_cpu()      ? cpu_candidates(conv)
                                          : device.is_mobile() ? mobile_candidates(conv)
                                                               : gpu_candidates(conv);
  std::vector<kernel::Candidate> fast = winograd(conv);
  // The best transform goes in front where it pays, the others stay alternatives. Mobile GPUs have
  // less bandwidth for its tiles than the rule knows.
  const auto rest = fast.begin() + (winograd_pays(conv) && !device.is_mobile() ? 1 : 0);
  result.insert(result.end(), rest, fast.end());
  result.insert(result.begin(), fast.begin(), rest);
  const auto named = winograd_quads(conv);
  const bool named_first = device.is_mobile() && winograd_quads_pays(conv);
  result.insert(named_first ? result.begin() : result.end(), named.begin(), named.end());
  // Few channels leave most of a tensor core's block empty, few products most of the device.
  const bool fills_blocks = conv.group_out >= 8 && conv.depth >= 16 && !few_products(conv);
  const auto tensor = tensor_gemm(conv);
  result.insert(fills_blocks ? result.begin() : result.end(), tensor.begin(), tensor.end());
  const auto halo = tensor_halo(conv);
  result.insert(fills(device, halo) ? result.begin() : result.end(), halo.begin(), halo.end());
  append(result, half_gemms(conv));
  result.push_back(naive(conv));
  return result;
}

double flops(const NodeContext& node) {
  const ir::Shape& weights = node.input(kWeights).shape;
  return 2.0 * static_cast<double>(node.output(0).shape.elements() * weights.elements(1, 4));
}

}  // namespace

const Family kConv2dFamily = [] {
  Family family;
  family.name = "conv2d";
  family.has_epilogue = true;
  family.residual = kResidual;
  family.writes_slices = true;
  family.builtins = {{kConv2d, "CONV_2D", 2, 1}};
  family.core = true;
  family.import = import_convolution<tfl::ConvParams, /*channel_axis=*/0>;
  family.infer = infer;
  family.candidates = candidates;
  family.allows_quantized = true;
  family.rows = &kConvRows;
  family.flops = flops;
  family.weights.slot = kWeights;
  family.weights.bias = kBias;
  family.weights.out_axis = 0;
  family.weights.in_axis = 3;
  family.weights.divisible = true;
  family.weights.stock_needs_bias = true;
  family.work_kind = WorkKind::kProduct;
  return family;
}();

}  // namespace clgpu::ops
