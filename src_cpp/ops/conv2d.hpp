// Attributes of CONV_2D, for the pass that folds PAD into it.
#pragma once

#include "ops/conv_geometry.hpp"

namespace clgpu::ops {

extern const Family kConv2dFamily;

struct Conv2dAttrs : ir::Attrs {
  ConvGeometry geometry;
};

/// The same convolution of an image with more zeros around it; `attrs` must have VALID padding.
ir::AttrsPtr with_padding(const Conv2dAttrs& attrs, int top, int bottom, int left, int right);

}  // namespace clgpu::ops
