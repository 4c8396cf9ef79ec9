// Shared by the engines of transposed convolution.
#pragma once

#include <optional>
#include <vector>

#include "ir/fields.hpp"
#include "ops/products/conv_geometry.hpp"

namespace clgpu::ops::transpose_conv {

constexpr int kWeights = 1;  // input of both operations

struct TransposeConvAttrs : ir::Attrs {
  ConvGeometry geometry;    ///< of the convolution that this one reverses
  int image = 2, bias = 3;  ///< inputs
  /// Output height and width that the model states; 0: computed by the rule of the custom
  /// operation.
  int out_h = 0, out_w = 0;
  std::optional<Window> rows;  ///< for a band: replaces these and the padding
  CLGPU_FIELDS(geometry, image, bias, out_h, out_w, rows)
};

bool quantized(const NodeContext& node);

/// The paddings are those of the forward convolution, which maps the result to the image.
ConvWindows windows_of(const NodeContext& node);

/// Sets types and appends the image.
kernel::Launch make_launch(const NodeContext& node, const char* file, const char* entry,
                           bool image = false);

/// push_result, with the load-time launches of quantised nodes.
void add_result(kernel::Candidate& candidate, kernel::Launch& launch, const NodeContext& node);

/// Appends sizes, strides and paddings.
void push_geometry(kernel::Launch& launch, const NodeContext& node);

/// Appends the values that represent zero in the image and in the weights.
void push_zeros(kernel::Launch& launch, const NodeContext& node);

/// For mobile GPUs: a work-item keeps pixels x 4 channels in named vectors; best guess first.
std::vector<kernel::Candidate> quads(const NodeContext& node, const DeviceInfo& device);

}  // namespace clgpu::ops::transpose_conv
