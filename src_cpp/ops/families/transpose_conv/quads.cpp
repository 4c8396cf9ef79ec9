// Engine `quads`, for mobile GPUs.
#include <algorithm>

#include "ops/families/transpose_conv/transpose_conv.hpp"
#include "ops/products/half_sums.hpp"
#include "ops/shared/mobile.hpp"

namespace clgpu::ops::transpose_conv {

namespace {

kernel::Candidate quads_of(const NodeContext& node, const DeviceInfo& device, bool as_image,
                           DType weights_type) {
  constexpr int kPanel = 16;  // channels of work-items side by side, which read one line of weights
  const auto& attrs = node.attrs<TransposeConvAttrs>();
  const ir::Tensor& src = node.input(attrs.image);
  const ir::Shape& dst = node.output(0).shape;
  const std::int64_t stride = attrs.geometry.stride_w, rows = dst.elements(0, 2);
  const std::int64_t vectors = ceil_div(dst[3], 4);
  const auto blocks = [&](int pixels) {
    return ceil_div(ceil_div(dst[2], stride), pixels) * stride;
  };
  int pixels = 4;
  while (pixels > 1 && (ceil_div(dst[2], stride) <= pixels / 2 ||
                        vectors * blocks(pixels) * rows < items_to_fill(device))) {
    pixels /= 2;
  }

  const int panel = static_cast<int>(std::min<std::int64_t>(kPanel, 4 * vectors));
  const bool four = src.shape[3] % 4 == 0;
  const bool aligned = dst[3] % 4 == 0 && result_layout(node).aligned(4);
  const auto packed = pack_weights(node, kWeights, 1, panel, weights_type);
  const bool image = as_image && four && reads_as_image(src, device);
  const std::int64_t weights =
      packed.scratch.bytes / static_cast<std::int64_t>(size_of(packed.storage));
  const bool packed_image =
      as_image && !has_int8_weights(node) && reads_as_image(weights, packed.storage, device);
  kernel::Candidate candidate{
      as_image ? "quads_image" : "quads", {packed.launch}, {packed.scratch}};

  kernel::Launch launch =
      make_launch(node, "transpose_conv/quads.cl", "transpose_conv_quads", image);
  set_weights_type(launch, "PACKED_T", node, packed.storage);
  launch.macro("PX", pixels).macro("PANEL", panel).macro("KV", four ? 4 : 1);
  launch.macro("ALIGNED", aligned ? 1 : 0);
  launch.macro("SRC_KIND", kind_of(image)).macro("PACKED_KIND", kind_of(packed_image));
  packed_image ? launch.scratch_image(0, packed.storage) : launch.scratch_in(0);
  add_result(candidate, launch, node);
  launch.i32(blocks(pixels));
  push_geometry(launch, node);
  push_zeros(launch, node);
  set_mobile_range(launch, vectors, blocks(pixels), rows, device);
  candidate.launches.push_back(launch);
  return candidate;
}

}  // namespace

std::vector<kernel::Candidate> quads(const NodeContext& node, const DeviceInfo& device) {
  // Not every driver can create an image from every buffer.
  const bool image = reads_as_image(node.input(node.attrs<TransposeConvAttrs>().image), device);
  std::vector<kernel::Candidate> result;
  const auto add = [&](DType weights) {
    if (image) result.push_back(quads_of(node, device, true, weights));
    result.push_back(quads_of(node, device, false, weights));
  };
  if (takes_half_sums(node, device)) {
    add(DType::kF16);
    for (kernel::Candidate& candidate : result) candidate = half_form(std::move(candidate));
  }
  add(DType::kF32);
  return result;
}

}  // namespace clgpu::ops::transpose_conv
