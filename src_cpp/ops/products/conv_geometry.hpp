// Shared by the convolution families: strides, paddings, packed weights.
#pragma once

#include <string>
#include <vector>

#include "ir/fields.hpp"
#include "ops/products/channels.hpp"

namespace clgpu::ops {

extern const Family kConv2dFamily, kDepthwiseConv2dFamily;

/// TFLite's padding modes.
constexpr int kPaddingSame = 1, kPaddingValid = 2;

/// How a filter moves over an image.
struct ConvGeometry {
  int padding = kPaddingSame;
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  /// Rows and columns around the image, added to those of the mode; only with VALID (a padding that
  /// was folded into the convolution). Negative: this many of the image's own are left out.
  int extra_top = 0, extra_bottom = 0, extra_left = 0, extra_right = 0;
  /// The content of the border: false: zeros; true: the image mirrored at its outermost rows and
  /// columns, as in MIRROR_PAD's mode REFLECT. Each border is then smaller than the image.
  bool reflect = false;
  CLGPU_FIELDS(padding, stride_h, stride_w, dilation_h, dilation_w, extra_top, extra_bottom,
               extra_left, extra_right, reflect)
  static const char* words(std::string_view member) {
    if (member == "padding") return ", SAME, VALID";
    return "";
  }
};

/// Attributes of CONV_2D and DEPTHWISE_CONV_2D, into which a pass folds PAD.
struct ConvAttrs : ir::Attrs {
  ConvGeometry geometry;
  CLGPU_FIELDS(geometry)
};

/// Rows and columns around an image: padded, or left out if negative.
struct Border {
  int top = 0, bottom = 0, left = 0, right = 0;
  bool reflect = false;  ///< the padded ones mirror the image, otherwise they are zeros
};

/// The same convolution of an image that is still to get `border`; null if one node cannot do both:
/// the padding is not VALID, or the convolution's own border is of another kind.
ir::AttrsPtr with_border(const ConvAttrs& attrs, const Border& border);

/// Positions of a filter of filter_h x filter_w elements on an image of in_h x in_w.
struct ConvWindows {
  Window h, w;
};
ConvWindows windows(const ConvGeometry& geometry, int in_h, int in_w, int filter_h, int filter_w);

/// Like windows(), but throws ShapeError if there is no position for the filter, or the image is
/// too small for a reflecting border.
ConvWindows checked_windows(const ConvGeometry& geometry, int in_h, int in_w, int filter_h,
                            int filter_w);

/// Refusals common to the convolutions: image and weights of rank 4, all float32 or quantised as
/// check_quantized_product demands; valid padding, strides and dilations.
std::optional<Refusal> check_convolution(const tfl::NodeView& node, const ProductInputs& inputs,
                                         const ConvGeometry& geometry);

/// Import of a convolution with inputs image, weights and bias. Params: tfl::ConvParams or
/// tfl::DepthwiseConvParams; channel_axis: the axis of the output channels in the weights.
template <class Params, int channel_axis>
OrRefusal<Imported> import_convolution(const tfl::NodeView& node) {
  const auto* params = node.params<Params>();
  CLGPU_REFUSE_IF(params == nullptr, Why::kParameter, "", "the node has no parameters");
  ConvAttrs attrs;
  attrs.geometry.padding = params->padding;
  attrs.geometry.stride_h = params->stride_height;
  attrs.geometry.stride_w = params->stride_width;
  attrs.geometry.dilation_h = params->dilation_height;
  attrs.geometry.dilation_w = params->dilation_width;
  if (auto refusal = check_convolution(node, {0, 1, 2, channel_axis}, attrs.geometry))
    return *refusal;
  const auto epilogue = fused_activation(params->activation);
  if (!epilogue) return epilogue.refusal();
  if (node.output(0).is_quantized()) {
    if (auto refusal = check_clamping(*epilogue)) return *refusal;
  }
  return Imported{share(attrs), *epilogue};
}

/// Throws ShapeError if there is a bias and it does not have `channels` elements.
void check_bias_shape(const NodeContext& node, int bias, int channels);

/// set_result_types() and SRC_T; image: input index.
void set_conv_types(kernel::Launch& launch, const NodeContext& node, int image, int bias);

/// Sets the macro REFLECT of kernels/common/border.cl.
void set_border(kernel::Launch& launch, const ConvGeometry& geometry);

/// Appends the arguments in_h, in_w, in_c, out_h, out_w, out_c, filter_h, filter_w, stride_h and
/// stride_w. Image, weights: input indices; the filter's size is axes 1 and 2 of the weights.
void push_conv_sizes(kernel::Launch& launch, const NodeContext& node, int image, int weights,
                     const ConvGeometry& geometry);

/// OHWI weights arranged by output channel in a scratch buffer: [groups, panels, depth, panel],
/// then zeros for pixels outside of the image. See kernels/conv2d/pack_weights.cl.
struct PackedWeights {
  kernel::Launch launch;  ///< writes the scratch buffer 0
  kernel::Scratch scratch;
  DType storage;
  int panels;             ///< of one group
  std::int64_t zeros_at;  ///< element where the zeros begin
};

/// `groups` groups of weights (input `weights` of the node), `panel` output channels next to each
/// other. `image_storage` is the type as which the zeros (a filter row of input pixels of a group)
/// will be read.
PackedWeights pack_weights(const NodeContext& node, int weights, int groups, int panel,
                           DType image_storage);

/// The same for weights of 8 bits, as words of four input channels: depth counts words, storage is
/// int32, and the borders hold the stored integers that represent zero in the image. See
/// kernels/conv2d/pack_words.cl.
PackedWeights pack_words(const NodeContext& node, int image, int weights, int groups, int panel);

/// Output channels that a CPU computes as one vector if there are `channels` of them: 4, 8 or 16.
int cpu_vector(int channels);

/// Whether a CPU has registers for vectors of 16 floats.
bool has_512_bit_registers(const DeviceInfo& device);

}  // namespace clgpu::ops
