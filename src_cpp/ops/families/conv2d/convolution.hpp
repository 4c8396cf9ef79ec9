// The parameters of a CONV_2D, and the engines of its family: each creates the launches of one way
// to compute it. One file per engine.
#pragma once

#include <string>
#include <vector>

#include "ops/products/conv_geometry.hpp"
#include "ops/products/matmul.hpp"

namespace clgpu::ops::conv2d {

constexpr int kImage = 0, kWeights = 1, kBias = 2, kResidual = 3, kSlopes = 4;  // inputs

struct Convolution {
  Convolution(const NodeContext& node_context, const DeviceInfo& device_info);

  const NodeContext& node;
  const DeviceInfo& device;
  const ConvGeometry& geometry;
  ConvWindows at;  ///< output size, and the border in front of the image
  int batch;       ///< images
  int in_h, in_w, in_c;
  int out_h, out_w, out_c;
  int filter_h, filter_w;
  int groups, group_in, group_out;  ///< channels of one group
  std::int64_t pixels;              ///< batch * out_h * out_w
  std::int64_t depth;               ///< filter_h * filter_w * group_in

  /// Each quad of input channels begins at an address aligned to four elements.
  bool aligned() const { return group_in % 4 == 0; }
  /// The output is the product of the image, seen as a matrix, with the weights; possibly only of
  /// some rows of one image, from -at.h.before on.
  bool is_pointwise() const;
  /// Integers with scales; otherwise floats.
  bool quantized() const { return node.output(0).is_quantized() || hybrid(); }
  bool hybrid() const { return is_hybrid(node); }
  /// Of int8 or uint8.
  bool is_int8() const { return quantized() && size_of(node.output(0).dtype) == 1; }
  DType image_storage() const { return node.input(kImage).storage; }

  /// Sets SRC_T, REFLECT and the macros of the result.
  void set_types(kernel::Launch& launch) const {
    set_conv_types(launch, node, kImage, kBias);
    set_border(launch, geometry);
  }
  /// Each quad of output channels, in any group, begins at a multiple of four elements.
  bool aligned_result() const { return group_out % 4 == 0 && result_layout(node).aligned(4); }
  /// Appends bias, residual and dst.
  kernel::Launch& push_result(kernel::Launch& launch) const {
    return ops::push_result(launch, node, kBias);
  }
  /// The table of a quantised convolution's requantisation; see ops::channel_table.
  ChannelTable channels(int first, bool as_int8 = false) const;
  /// Appends the table's arguments and dst.
  void push_quantized_result(kernel::Launch& launch, const ChannelTable& table) const;
  /// Appends in_h, in_w, in_c, out_h, out_w, out_c, filter_h, filter_w, stride_h, stride_w,
  /// dilation_h, dilation_w, top and left.
  void push_geometry(kernel::Launch& launch) const;
};

/// A work-item per element: the simplest form.
kernel::Candidate naive(const Convolution& conv);

/// A work-item keeps `vectors` vectors of `width` channels x `tile` pixels. Width: any for floats,
/// 4 for int8 and uint8, 1 for int16.
kernel::Candidate direct(const Convolution& conv, const char* name, int width, int vectors,
                         int tile);

/// 8-bit integers on CPUs, as pairs of 16 bits in registers; best guess first, none for int16.
std::vector<kernel::Candidate> pairs(const Convolution& conv);

/// `lanes` work-items share each of `tile` sums at a time: for few outputs and short launches.
kernel::Candidate dot(const Convolution& conv, int lanes, int tile);

/// Sums in separate variables, image and weights read in quads through buffers or images: for
/// mobile GPUs, best guess first; none for int16.
std::vector<kernel::Candidate> quads(const Convolution& conv);

/// Tiles of pixels x channels: the best `count` variants, best guess first.
std::vector<kernel::Candidate> implicit_gemms(const Convolution& conv, std::size_t count);

/// Such tiles for int8 and uint8.
std::vector<kernel::Candidate> int8_gemms(const Convolution& conv, std::size_t count);

/// The best of them with products and short sums in half; none if the device has no half
/// arithmetic, or the image is float.
std::vector<kernel::Candidate> half_gemms(const Convolution& conv);

/// Tiles on NVIDIA's tensor cores; empty if the device has none.
std::vector<kernel::Candidate> tensor_gemm(const Convolution& conv);
/// The same on pairs of columns of an image of few channels, which a launch makes halves; empty if
/// that does not suit the convolution.
std::vector<kernel::Candidate> tensor_pairs(const Convolution& conv);

/// NVIDIA's tensor cores with stride 1, every pixel copied to local memory once; best guess first,
/// empty if the device has none.
std::vector<kernel::Candidate> tensor_halo(const Convolution& conv);

/// Variants that keep a part of the image in local memory for all taps of the filter, best guess
/// first; none for a single tap, or for a stride or dilation above 1.
std::vector<kernel::Candidate> image_tiles(const Convolution& conv);

/// Winograd's transforms, each a candidate with four or more launches, best guess first, and the
/// reasons why others cannot compute the node.
std::vector<kernel::Candidate> winograd(const Convolution& conv);

/// Whether the first of winograd() probably takes less time than the products of direct
/// convolution.
bool winograd_pays(const Convolution& conv);

/// Transforms for filters of 3x3 in named vectors, best guess first: several for mobile GPUs, one
/// for others; none unless the channels are multiples of four.
std::vector<kernel::Candidate> winograd_quads(const Convolution& conv);

/// Whether on a mobile GPU the first of them probably takes less time than direct convolution.
bool winograd_quads_pays(const Convolution& conv);

}  // namespace clgpu::ops::conv2d
