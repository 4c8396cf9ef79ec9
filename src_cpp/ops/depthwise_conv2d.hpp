// Attributes of DEPTHWISE_CONV_2D, for the pass that folds PAD into it.
#pragma once

#include "ops/conv_geometry.hpp"

namespace clgpu::ops {

extern const Family kDepthwiseConv2dFamily;

struct DepthwiseConv2dAttrs : ir::Attrs {
  ConvGeometry geometry;
};

/// The same convolution of an image with more zeros around it; `attrs` must have VALID padding.
ir::AttrsPtr with_padding(const DepthwiseConv2dAttrs& attrs, int top, int bottom, int left,
                          int right);

}  // namespace clgpu::ops
