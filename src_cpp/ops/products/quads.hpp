// Products for mobile GPUs, on quads of elements and without private arrays:
// kernels/conv2d/quads.cl, for convolutions and rows of a matrix.
#pragma once

#include <string>
#include <vector>

#include "ops/products/channels.hpp"

namespace clgpu::ops {

/// `pixels` sums of `depth` products for each of `group_out` channels of each of `groups` groups.
struct QuadProduct {
  int src, weights;  ///< inputs; weights [groups * group_out, depth]
  std::int64_t pixels;
  int groups, group_in, group_out;  ///< channels of one group
  std::int64_t depth;               ///< filter taps * group_in
  bool pointwise;                   ///< pixels of the result are pixels of src
  bool int8;                        ///< of int8 or uint8, otherwise of floats

  const char* file() const { return int8 ? "conv2d/quads_s8.cl" : "conv2d/quads.cl"; }
  const char* entry() const { return int8 ? "conv2d_quads_s8" : "conv2d_quads"; }
};

/// A work-item keeps `pixels` pixels x `vectors` vectors of four channels; `parts` of them share
/// sums.
struct QuadTile {
  int pixels = 1, vectors = 1, parts = 1;
  bool image = false;  ///< src and weights are read as images
  int items = 64;      ///< of a work-group, at most

  /// "quads_image_4x2", "quads_1x1_parts8", "quads_2x1_items32".
  std::string name() const;
};

/// Tiles for the device, best guess first, `most` at most. For devices that are not mobile, two or
/// three tiles that probably run well there, with images among them if the device has any.
std::vector<QuadTile> quad_tiles(const NodeContext& node, const QuadProduct& product,
                                 const DeviceInfo& device);

/// A candidate with the launch that packs the weights into its scratch buffer 0.
kernel::Candidate pack_quads(const NodeContext& node, const QuadProduct& product,
                             const DeviceInfo& device, const QuadTile& tile);

/// Sets macros and range of a launch of that kernel except types, result and REFLECT, and appends
/// src and packed; the caller appends result, pixels, group sizes, geometry and push_quad_zeros().
void set_quads(kernel::Launch& launch, const NodeContext& node, const QuadProduct& product,
               const DeviceInfo& device, const QuadTile& tile);

/// Appends the last arguments, which only the kernel of integers has.
void push_quad_zeros(kernel::Launch& launch, const NodeContext& node, const QuadProduct& product);

}  // namespace clgpu::ops
