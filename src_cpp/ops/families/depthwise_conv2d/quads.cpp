// Engine `quads`, for mobile GPUs.
#include "ops/families/depthwise_conv2d/depthwise.hpp"
#include "ops/products/half_sums.hpp"
#include "ops/shared/mobile.hpp"

namespace clgpu::ops::depthwise_conv2d {
namespace {

Images images_of(const NodeContext& node, const DeviceInfo& device) {
  if (vector_width(node, 4) < 4) return {};
  return {multiplier(node) == 1 && reads_as_image(node.input(kImage), device),
          !has_int8_weights(node) && reads_as_image(node.input(kWeights), device)};
}

// A work-item computes `pixels` of a row.
kernel::Candidate quads_of(const NodeContext& node, const DeviceInfo& device, int pixels,
                           const Images& images) {
  constexpr int kLongest = 5;  // taps per row that are worth a separate program
  const auto& geometry = node.attrs<ConvAttrs>().geometry;
  const ir::Shape& dst = node.output(0).shape;
  const int taps = node.input(kWeights).shape[2];
  const int width = vector_width(node, 4);
  kernel::Candidate candidate =
      make_candidate(node, (images.any() ? "quads_image_" : "quads_") + std::to_string(pixels),
                     "depthwise_conv2d/quads.cl", "depthwise_conv2d_quads", {}, images);
  kernel::Launch& launch = candidate.launches.back();
  launch.macro("VW", width).macro("PX", pixels).macro("MULTIPLIER", multiplier(node));
  launch.macro("SLIDES", geometry.stride_w == geometry.dilation_w ? 1 : 0);
  launch.macro("FILTER_W", taps <= kLongest ? taps : 0);
  launch.macro("ALIGNED", result_layout(node).aligned(width) ? 1 : 0);
  launch.macro("SRC_KIND", kind_of(images.image)).macro("WEIGHTS_KIND", kind_of(images.weights));
  launch.macro("WEIGHTS_SHIFTED", weights_zero(node) == 0 ? 0 : 1);
  push_geometry(launch, node);
  set_mobile_range(launch, dst[3] / width, ceil_div(dst[2], pixels), dst.elements(0, 2), device);
  return candidate;
}

}  // namespace

std::vector<kernel::Candidate> quads(const NodeContext& node, const DeviceInfo& device) {
  // On a core at full occupancy, each work-item has registers for four sums and four pixels only.
  const ir::Shape& dst = node.output(0).shape;
  const int width = vector_width(node, 4);
  const auto items = [&](int pixels) {
    return dst.elements(0, 2) * ceil_div(dst[2], pixels) * (dst[3] / width);
  };
  int best = 4;
  while (best > 1 && (dst[2] <= best / 2 || items(best) < items_to_fill(device))) best /= 2;
  const Images images = images_of(node, device);
  std::vector<kernel::Candidate> result{quads_of(node, device, best, images)};
  // Not every driver can create an image from every buffer.
  if (images.any()) result.push_back(quads_of(node, device, best, {}));
  if (!device.is_mobile()) return with_half_forms(node, device, std::move(result));
  for (const int pixels : {4, 2, 1}) {
    if (pixels != best) result.push_back(quads_of(node, device, pixels, images));
  }
  return with_half_forms(node, device, std::move(result));
}

}  // namespace clgpu::ops::depthwise_conv2d
